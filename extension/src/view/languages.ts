/** Which highlighting a stage gets. Colours are classes (`tok-…`), so that they follow the theme. */

import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { StreamLanguage, syntaxHighlighting, type StreamParser } from "@codemirror/language";
import { gas } from "@codemirror/legacy-modes/mode/gas";
import type { Extension } from "@codemirror/state";
import { classHighlighter } from "@lezer/highlight";

/** A language of instructions, one a line: what tells its words apart. */
interface Words {
  comment: RegExp;
  patterns: [RegExp, string][];
}

const NUMBER: [RegExp, string] = [/^(?:0[xXfF][0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b/, "number"];
const STRING: [RegExp, string] = [/^"(?:[^"\\]|\\.)*"?/, "string"];
const WORD: [RegExp, string] = [/^[A-Za-z_$.][\w$.]*/, "name"];

const MLIR: Words = {
  comment: /^\/\/.*/,
  patterns: [
    STRING,
    [/^%[\w$.#:-]+/, "variableName"],
    [/^@[\w$.-]+/, "variableName.definition"],
    [/^#[\w$.-]+/, "meta"],
    [/^\^[\w$.-]+/, "labelName"],
    [/^![\w$.-]+(?:<[^<>]*>)?/, "typeName"],
    [/^(?:tensor|memref|vector|tuple)(?=<)|^(?:[iu]\d+|bf16|f\d+\w*|index)\b/, "typeName"],
    [/^(?:module|func|loc|attributes|iter_args|else|to|step)\b/, "keyword"],
    [/^[a-z_]\w*\.[\w.]+/, "keyword"],
    NUMBER,
    WORD,
  ],
};

const LLVM: Words = {
  comment: /^;.*/,
  patterns: [
    STRING,
    [/^%[\w$."-]+/, "variableName"],
    [/^@[\w$."-]+/, "variableName.definition"],
    [/^![\w.]+/, "meta"],
    [/^#\d+/, "meta"],
    [/^(?:void|ptr|i\d+|half|bfloat|float|double|label|metadata)\b|^<\d+ x \w+>/, "typeName"],
    [/^[\w.$-]+:/, "labelName"],
    [/^(?:define|declare|attributes|target|source_filename|to|align|null|true|false|undef|poison)\b/, "keyword"],
    [/^[a-z][\w.]*/, "keyword"],
    NUMBER,
    WORD,
  ],
};

const PTX: Words = {
  comment: /^\/\/.*|^\/\*.*?\*\//,
  patterns: [
    STRING,
    [/^%[\w.]+/, "variableName"],
    [/^@!?%?\w+/, "meta"],
    [/^\.(?:pred|[busf]\d+(?:x2)?|bf16(?:x2)?|tf32|[ef]\d+m\d+)\b/, "typeName"],
    [/^\.[\w.]+/, "meta"],
    [/^\$?\w+:/, "labelName"],
    [/^[a-z][\w]*(?:\.[\w:]+)*/, "keyword"],
    NUMBER,
    WORD,
  ],
};

const SASS: Words = {
  comment: /^\/\/.*|^\/\*.*?\*\//,
  patterns: [
    STRING,
    [/^(?:U?R\d+|U?RZ|U?P\d|U?PT|SR_\w+|B\d+|SB\d+)\b/, "variableName"],
    [/^@!?U?P\w+/, "meta"],
    [/^\.[\w.]+:?/, "labelName"],
    [/^c\[\w+\]\[\w+\]/, "typeName"],
    [/^[A-Z][A-Z0-9]*(?:\.[\w.]+)*/, "keyword"],
    NUMBER,
    WORD,
  ],
};

const BYTECODE: Words = {
  comment: /^#.*/,
  patterns: [
    [/^'(?:[^'\\]|\\.)*'/, "string"],
    STRING,
    [/^[A-Z][A-Z_]{2,}\b/, "keyword"],
    [/^>>|^-->/, "meta"],
    NUMBER,
    WORD,
  ],
};

const GUARDS: Words = {
  comment: /^#.*/,
  patterns: [
    [/^'(?:[^'\\]|\\.)*'/, "string"],
    STRING,
    [/^(?:[A-Z][A-Z_]{3,}|\w*Guard\w*)\b/, "keyword"],
    [/^[|+][\s|+-]*/, "meta"],
    NUMBER,
    WORD,
  ],
};

function words({ comment, patterns }: Words): StreamParser<unknown> {
  return {
    token(stream) {
      if (stream.eatSpace()) {
        return null;
      }
      if (stream.match(comment)) {
        return "comment";
      }
      for (const [pattern, style] of patterns) {
        if (stream.match(pattern)) {
          return style;
        }
      }
      stream.next();
      return null;
    },
  };
}

const stream = (language: Words): Extension => StreamLanguage.define(words(language));

const LANGUAGES: Record<string, () => Extension> = {
  python: () => python(),
  cpp: () => cpp(),
  cuda: () => cpp(),
  asm: () => StreamLanguage.define(gas),
  assembly: () => StreamLanguage.define(gas),
  amdgcn: () => stream(SASS),
  mlir: () => stream(MLIR),
  ttir: () => stream(MLIR),
  ttgir: () => stream(MLIR),
  llvm: () => stream(LLVM),
  llir: () => stream(LLVM),
  ptx: () => stream(PTX),
  sass: () => stream(SASS),
  "python-bytecode": () => stream(BYTECODE),
  "irscope-guards": () => stream(GUARDS),
};

export function highlighting(language: string): Extension {
  return [LANGUAGES[language]?.() ?? [], syntaxHighlighting(classHighlighter)];
}
