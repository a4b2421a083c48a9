/** Python in which the kernels of Inductor's output code, which are strings there, have the colours of their language. */

import { cppLanguage } from "@codemirror/lang-cpp";
import { pythonLanguage } from "@codemirror/lang-python";
import type { Language } from "@codemirror/language";
import { parseMixed, type Input, type Parser, type SyntaxNodeRef } from "@lezer/common";
// Which call holds which language is declared there, once for VS Code and this page.
import injection from "../../../media/kernels.injection.tmLanguage.json";

const PARSERS: Readonly<Record<string, Parser>> = {
  "source.cpp": cppLanguage.parser,
  "source.python": pythonLanguage.parser,
};
const KERNELS = injection.patterns.map(({ begin, patterns: [content] }) => ({
  begin: new RegExp(begin),
  parser: PARSERS[content?.patterns[0]?.include ?? ""],
}));
const QUOTE = "'''";
/** A call with more before its string is not Inductor's. */
const MOST_BEFORE = 4_000;

/** The parser of a string's content, and where that is; null if the string is not a kernel. */
function kernelIn({ name, from, to }: SyntaxNodeRef, input: Input): ReturnType<Parameters<typeof parseMixed>[0]> {
  if (name !== "String" || !/^r?'''\s*$/m.test(firstLine(input, from, to))) {
    return null;
  }
  const opening = firstLine(input, from, to);
  const before = input.read(Math.max(0, from - MOST_BEFORE), from);
  const line = before.slice(before.lastIndexOf("\n") + 1) + opening;
  const parser = KERNELS.find(({ begin }) => begin.test(line))?.parser;
  const start = from + opening.length + 1;
  const end = input.read(to - QUOTE.length, to) === QUOTE ? to - QUOTE.length : to;
  return parser === undefined || start >= end ? null : { parser, overlay: [{ from: start, to: end }] };
}

/** The line on which a string begins, from there on; it is short where it only opens a kernel. */
function firstLine(input: Input, from: number, to: number): string {
  return input.read(from, Math.min(to, from + 40)).split("\n", 1)[0] ?? "";
}

export const pythonWithKernels: Language = pythonLanguage.configure({ wrap: parseMixed(kernelIn) });
