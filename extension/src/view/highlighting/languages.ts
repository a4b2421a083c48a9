/**
 * Which highlighting a text gets. Python and C++ have parsers of CodeMirror, which fold, too, and are far smaller than VS
 * Code's grammars of them; all other languages have the grammars that the extension contributes.
 */

import { cppLanguage } from "@codemirror/lang-cpp";
import { syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { classHighlighter } from "@lezer/highlight";
import { languages } from "contributed-grammars";
import { grammarColours } from "./colours";
import { pythonWithKernels } from "./pythonKernels";

export function highlighting(language: string): Extension {
  if (languages.includes(language)) {
    return grammarColours(language);
  }
  const parser = { python: pythonWithKernels, cpp: cppLanguage }[language];
  return parser === undefined ? [] : [parser, syntaxHighlighting(classHighlighter)];
}
