/** The grammars, on texts as compilers write them, with the engine that VS Code uses. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import textmate from "vscode-textmate";
import { ROOT } from "../../../scripts/lib/paths.mjs";
import { contributes, grammarOf, SAMPLES } from "../textmate.mjs";

/** @typedef {{text: string, scope: string}} Token its innermost scope, empty where it has none of its own */

/** @param {string} language @param {string} file @returns {Promise<{row: string, tokens: Token[]}[]>} */
async function tokenized(language, file) {
  return tokensOf(language, fs.readFileSync(file, "utf8"));
}

/** @param {string} language @param {string} text @returns {Promise<{row: string, tokens: Token[]}[]>} */
async function tokensOf(language, text) {
  const { grammar } = await grammarOf(language);
  let stack = textmate.INITIAL;
  return text.split("\n").map((row) => {
    const { tokens, ruleStack, stoppedEarly } = grammar.tokenizeLine(row, stack, 1000);
    assert.ok(!stoppedEarly, row);
    stack = ruleStack;
    return {
      row,
      tokens: joined(
        tokens.map(({ startIndex, endIndex, scopes }) => ({
          text: row.slice(startIndex, endIndex),
          scope: scopes.length > 1 ? (scopes.at(-1) ?? "") : "",
        })),
      ),
    };
  });
}

/** A string and its quotes are tokens of their own to the engine. @param {Token[]} tokens @returns {Token[]} */
function joined(tokens) {
  /** @type {Token[]} */
  const found = [];
  for (const token of tokens) {
    const last = found.at(-1);
    if (last !== undefined && last.scope === token.scope && token.scope.startsWith("string.")) {
      last.text += token.text;
    } else {
      found.push(token);
    }
  }
  return found;
}

/** Language, file, and in a line with a text the scope of each of some tokens. @type {[string, string, [string, Record<string, string>][]][]} */
const CASES = [
  [
    ...SAMPLES.ttgir,
    [
      [
        "#blocked = ",
        { "#blocked": "entity.name.tag.alias", sizePerThread: "variable.parameter", 4: "constant.numeric" },
      ],
      [
        "#loc12 = loc(",
        { "#loc12": "entity.name.tag.alias", loc: "keyword.other.location", '"/home/user/gpu.py"': "string.quoted" },
      ],
      [
        "%mask_4 = arith",
        {
          "%mask_4": "variable.other.definition",
          arith: "entity.name.namespace.dialect",
          cmpi: "support.function",
          "%offsets_3": "variable.other.mlir",
        },
      ],
      [
        "tt.func public",
        { "@axpy_kernel": "entity.name.function", "!tt.ptr": "entity.name.type", f32: "storage.type" },
      ],
      ['"tt.reduce"(', { '"tt.reduce"': "support.function", axis: "variable.parameter" }],
      ["^bb0(", { "^bb0": "entity.name.label", callsite: "keyword.other.location" }],
      [
        "%x_6 = tt.load",
        {
          tensor: "storage.type",
          512: "constant.numeric.size",
          f32: "storage.type",
          "#blocked": "entity.name.tag.alias",
        },
      ],
    ],
  ],
  [...SAMPLES.ttir, [["tt.return", { return: "support.function" }]]],
  [
    ...SAMPLES.stablehlo,
    [
      [
        "stablehlo.dot_general",
        {
          stablehlo: "entity.name.namespace.dialect",
          dot_general: "support.function",
          4: "constant.numeric",
          contracting_dims: "variable.parameter",
        },
      ],
      ["stablehlo.convert", { "?": "constant.numeric.size", bf16: "storage.type" }],
      ['"stablehlo.while"', { "%3": "variable.other.definition", '"stablehlo.while"': "support.function" }],
      ["func.func public", { "@main": "entity.name.function", '"{replicated}"': "string.quoted" }],
      ["return %3#1", { return: "keyword.control", "%3#1": "variable.other" }],
    ],
  ],
  [
    ...SAMPLES.llir,
    [
      ["; ModuleID", { "; ModuleID = 'LLVMDialectModule'": "comment.line" }],
      [
        "define ptx_kernel",
        {
          define: "keyword.other",
          "@axpy_kernel": "entity.name.function",
          ptr: "storage.type",
          addrspace: "keyword.other",
          float: "storage.type",
          readnone: "storage.modifier",
        },
      ],
      [
        "%39 = fadd",
        {
          "%39": "variable.other.definition",
          fadd: "support.function",
          float: "storage.type",
          "!dbg": "entity.name.tag",
          "!16": "entity.name.tag",
        },
      ],
      ["%9 = shl", { 9: "constant.numeric", shl: "support.function" }],
      ["asm sideeffect", { asm: "keyword.other", "\\0A": "constant.character.escape" }],
      ["samesign ult", { ult: "keyword.operator.comparison", samesign: "storage.modifier" }],
    ],
  ],
  [
    ...SAMPLES.ptx,
    [
      [".version 8.7", { ".version": "keyword.control.directive", 8.7: "constant.numeric" }],
      [".target sm_90a", { sm_90a: "constant.other.target" }],
      [".visible .entry", { ".entry": "keyword.control.directive", axpy_kernel: "entity.name.function" }],
      [
        "ld.param.b64",
        { ld: "support.function", ".param.b64": "storage.type.modifier", "%rd4": "variable.other.register" },
      ],
      [
        "@%p1 ld.global.v4",
        { "@%p1": "keyword.control.predicate", ld: "support.function", "%r1": "variable.other.register" },
      ],
      ["%tid.x", { "%tid.x": "variable.language", mov: "support.function" }],
      [".loc\t1 14 28", { ".loc": "keyword.other.location", "// gpu.py:14:28": "comment.line" }],
      ["$L__tmp0:", { $L__tmp0: "entity.name.label" }],
    ],
  ],
  [
    ...SAMPLES.sass,
    [
      [
        "LDC.64 R14",
        {
          "/*0080*/": "comment.block.address",
          LDC: "support.function",
          ".64": "storage.type.modifier",
          R14: "variable.other.register",
          c: "storage.modifier.space",
          "0x218": "constant.numeric",
        },
      ],
      [
        "@!P1 LDG.E.128 R4",
        { "@!P1": "keyword.control.predicate", LDG: "support.function", UR6: "variable.other.register" },
      ],
      [
        "ISETP.GE.AND",
        { PT: "variable.other.register", P1: "variable.other.register", ".reuse": "storage.type.modifier" },
      ],
      ["EXIT", { EXIT: "keyword.control.flow" }],
    ],
  ],
  [
    ...SAMPLES["x86-64"],
    [
      ["kernel:", { kernel: "entity.name.label" }],
      ["pushq\t%rbp", { pushq: "support.function", "%rbp": "variable.other.register" }],
      ["\tret", { ret: "keyword.control.flow" }],
      ["%zmm", { "%zmm4": "variable.other.register" }],
    ],
  ],
  [
    ...SAMPLES.aarch64,
    [
      [
        "stp\tx29",
        {
          stp: "support.function",
          x29: "variable.other.register",
          sp: "variable.other.register",
          "#-16": "constant.numeric",
        },
      ],
      ["fadd\tv0.4s", { "v0.4s": "variable.other.register", fadd: "support.function" }],
      ["b.ne", { "b.ne": "keyword.control.flow", ".LBB0_1": "variable.parameter.symbol" }],
      ["cbz", { "// done": "comment.line" }],
      [".loc\t1 14 9", { ".loc": "keyword.other.location" }],
    ],
  ],
  [
    ...SAMPLES.amdgcn,
    [
      [
        "s_load_dwordx4",
        { s_load_dwordx4: "support.function", "s[4:7]": "variable.other.register", "0x0": "constant.numeric" },
      ],
      ["v_lshlrev", { v1: "variable.other.register", 2: "constant.numeric" }],
      ["; @axpy_kernel", { "; @axpy_kernel": "comment.line" }],
      ["s_endpgm", { s_endpgm: "keyword.control.flow" }],
    ],
  ],
];

/** Language, a line, and the scopes of some of its tokens. @type {[string, string, Record<string, string>][]} */
const LINES = [
  [
    "ptx",
    "\tcreatepolicy.fractional.L2::evict_last.b64 %rd4, 1.0;",
    { createpolicy: "support.function", ".fractional.L2::evict_last.b64": "storage.type.modifier" },
  ],
  ["irscope-guards", "| +- GuardManager: source=L['x']", { GuardManager: "entity.name.type", "'x'": "string" }],
  ["irscope-guards", "| | +- NO_TENSOR_ALIASING", { NO_TENSOR_ALIASING: "keyword.control" }],
  ["python-bytecode", "  6     >>    0 RESUME     0", { 6: "entity.name.tag.line", ">>": "keyword.operator.jump" }],
];

/** Lines on which a regular expression that tries every way to split them takes seconds to minutes. */
const BOMBS = [" ", "_", "a ", "1 ", "'\\", '"\\', "a.", "%a, ", "`(", "rep "].map(
  (unit) => `${unit.repeat(18_000 / unit.length)}A`,
);

describe("grammars", () => {
  for (const [language, line, scopes] of LINES) {
    it(`${language}: ${line.trim()}`, async () => {
      const [row] = await tokensOf(language, line);
      for (const [token, scope] of Object.entries(scopes)) {
        const found = row?.tokens.filter(({ text }) => text.trim() === token).map((each) => each.scope) ?? [];
        assert.ok(found[0]?.startsWith(scope), `${token} is ${found.join() || "no token"}, not ${scope}`);
      }
    });
  }

  for (const language of contributes.grammars.flatMap(
    (/** @type {{language?: string}} */ each) => each.language ?? [],
  )) {
    it(`${language}: no line of 18,000 letters takes long`, async () => {
      const { grammar } = await grammarOf(language);
      for (const line of BOMBS) {
        const before = process.cpuUsage();
        grammar.tokenizeLine(line, textmate.INITIAL);
        const { user, system } = process.cpuUsage(before); // Not the clock: the machine may be busy with other tests.
        const seconds = (user + system) / 1e6;
        assert.ok(seconds < 5, `${seconds} s for ${line.slice(0, 10)}…`);
      }
    });
  }

  for (const [language, file, expected] of CASES) {
    it(`${language}: ${path.relative(ROOT, file)}`, async () => {
      const rows = await tokenized(language, file);
      for (const [text, scopes] of expected) {
        const found = rows.find(({ row }) => row.includes(text));
        assert.ok(found, `a line with ${text}`);
        for (const [token, scope] of Object.entries(scopes)) {
          const mine = found.tokens.filter((each) => each.text.trim() === token);
          assert.ok(
            mine.some((each) => each.scope.startsWith(scope)),
            `${token} in «${found.row.trim().slice(0, 100)}» is ${mine.map((each) => each.scope || "plain").join(", ") || "no token"}, not ${scope}`,
          );
        }
      }
    });

    it(`${language}: hardly a word of ${path.relative(ROOT, file)} is left plain`, async () => {
      const rows = await tokenized(language, file);
      const words = rows.flatMap(({ tokens }) => tokens.filter(({ text }) => /\w/.test(text)));
      const plain = words.filter(({ scope }) => scope === "");
      assert.ok(words.length > 20);
      assert.ok(
        plain.length / words.length < 0.03,
        `plain: ${[...new Set(plain.map(({ text }) => text.trim()))].join(" | ").slice(0, 500)}`,
      );
    });
  }

  it("each language has a grammar, breakpoints, and the id that the server gives", () => {
    const server = fs.readFileSync(path.join(ROOT, "server", "irscope_server", "base", "stage_uris.py"), "utf8");
    const endings = Object.fromEntries(
      [...server.matchAll(/^ {4}"([\w-]+)": "(\.[\w.]+)",$/gm)].map((match) => match.slice(1)),
    );
    for (const { id, extensions, configuration } of contributes.languages) {
      assert.ok(
        contributes.grammars.some((/** @type {{language: string}} */ each) => each.language === id),
        id,
      );
      assert.ok(
        contributes.breakpoints.some((/** @type {{language: string}} */ each) => each.language === id),
        id,
      );
      assert.ok(extensions.includes(endings[id]), `${id}: ${endings[id]} is among ${extensions}`);
      if (configuration !== undefined) {
        const { wordPattern } = JSON.parse(fs.readFileSync(path.join(ROOT, configuration), "utf8"));
        assert.doesNotThrow(() => new RegExp(wordPattern ?? "", "u"), `${id}: ${wordPattern}`);
      }
    }
  });
});
