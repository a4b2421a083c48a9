/**
 * How the page colours the scopes of a grammar. The classes are those that Lezer's `classHighlighter` gives, so that each
 * colour is set once, in view.css.
 */

import type { IRawTheme } from "@shikijs/vscode-textmate";

/** A more specific scope wins, and a scope without a class looks like what is around it. */
const SCOPES: readonly [className: string, scopes: string[]][] = [
  ["", ["keyword.operator"]],
  ["tok-comment", ["comment"]],
  ["tok-string", ["string"]],
  ["tok-number", ["constant"]],
  ["tok-keyword", ["keyword", "constant.language", "storage.modifier", "variable.language"]],
  ["tok-typeName", ["storage.type", "entity.name.type", "entity.name.namespace"]],
  ["tok-definition", ["entity.name.function", "support.function"]],
  ["tok-variableName", ["variable"]],
  ["tok-labelName", ["entity.name.label", "entity.name.section"]],
  ["tok-meta", ["entity.name.tag", "entity.name.type.metadata"]],
];

/** The class of each number that a token has; the first is none. */
export const CLASSES: readonly string[] = SCOPES.map(([className]) => className);

/**
 * For the tokenizer. A theme can only give colours, so a rule's colour is the number of its class; `numberIn` reads it back.
 */
export const THEME: IRawTheme = {
  settings: [
    { settings: { foreground: colourOf(0), background: colourOf(0) } },
    ...SCOPES.map(([, scope], number) => ({ scope, settings: { foreground: colourOf(number) } })),
  ],
};

function colourOf(number: number): string {
  return `#${number.toString(16).padStart(6, "0")}`;
}

/** The number of the class behind a colour of the theme; 0 for none. */
export function numberIn(colour: string | undefined): number {
  return Number.parseInt(colour?.slice(1) ?? "", 16) || 0;
}
