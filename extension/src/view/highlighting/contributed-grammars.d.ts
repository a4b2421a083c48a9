/** The grammars that package.json contributes to VS Code; scripts/lib/grammarModules.mjs makes the module. */
declare module "contributed-grammars" {
  import type { IRawGrammar } from "@shikijs/vscode-textmate";

  /** The ids of the languages that have one. */
  export const languages: readonly string[];
  /** By language. */
  export const grammars: Readonly<Record<string, IRawGrammar>>;
}
