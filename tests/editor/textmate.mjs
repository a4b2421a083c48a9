/** The grammars of the extension with the engine that VS Code uses, and texts as compilers write them. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import { createRequire } from "node:module";
import * as path from "node:path";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";
import { ROOT } from "../../scripts/lib/paths.mjs";

export const { contributes } = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));

const H100 = path.join(ROOT, "tests", "triton_h100");
const OTHERS = path.join(ROOT, "tests", "editor", "grammars");

/** A text of each language, or several. @satisfies {Record<string, [language: string, file: string]>} */
export const SAMPLES = {
  ttgir: ["mlir", path.join(H100, "axpy_kernel", "kernel.ttgir")],
  ttir: ["mlir", path.join(H100, "per_fused_mul_sum", "kernel.ttir")],
  stablehlo: ["mlir", path.join(OTHERS, "stablehlo.mlir")],
  llir: ["llvm", path.join(H100, "axpy_kernel", "kernel.llir")],
  ptx: ["ptx", path.join(H100, "axpy_kernel", "kernel.ptx")],
  sass: ["sass", path.join(H100, "axpy_kernel", "kernel.nvdisasm")],
  "x86-64": ["asm", path.join(OTHERS, "x86-64.s")],
  aarch64: ["asm", path.join(OTHERS, "aarch64.s")],
  amdgcn: ["asm", path.join(OTHERS, "amdgcn.s")],
  bytecode: ["python-bytecode", path.join(OTHERS, "linear.pyc.txt")],
  guards: ["irscope-guards", path.join(OTHERS, "linear.guards.txt")],
};

/** @type {Promise<void> | undefined} */
let loading;

/**
 * @param {string} language @param {import("vscode-textmate").IRawTheme} [theme]
 * @returns {Promise<{grammar: import("vscode-textmate").IGrammar, colours: string[]}>} the colours of the theme by number
 */
export async function grammarOf(language, theme) {
  const wasm = createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm");
  await (loading ??= oniguruma.loadWASM(fs.readFileSync(wasm)));
  const { scopeName } = contributes.grammars.find(
    (/** @type {{language: string}} */ each) => each.language === language,
  );
  const registry = new textmate.Registry({
    ...(theme && { theme }),
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => {
      const file = contributes.grammars.find(
        (/** @type {{scopeName: string}} */ each) => each.scopeName === scope,
      )?.path;
      return file === undefined ? null : textmate.parseRawGrammar(fs.readFileSync(path.join(ROOT, file), "utf8"), file);
    },
  });
  const grammar = await registry.loadGrammar(scopeName);
  assert.ok(grammar);
  return { grammar, colours: registry.getColorMap() };
}
