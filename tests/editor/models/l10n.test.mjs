/** Texts that can be translated: what is taken out of the manifest, and that nothing is lost. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import ts from "typescript";
import { externalized, filesOfHost, textsOfSource } from "../../../scripts/lib/l10n.mjs";
import { ROOT } from "../../../scripts/lib/paths.mjs";
import { withTexts } from "../nls.mjs";

const PACKAGE = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));

describe("the texts of the manifest", () => {
  const { manifest, texts } = externalized(PACKAGE);

  it("have keys that say where they are", () => {
    assert.equal(texts["commands.irscope.run.title"], "Analyze This File");
    assert.equal(manifest["contributes"].commands[0].title, "%commands.irscope.run.title%");
    assert.equal(manifest["contributes"].commands[0].category, "%displayName%");
    assert.match(texts["configuration.properties.irscope.run.onSave.markdownEnumDescriptions.off"] ?? "", /^Nothing\./);
    assert.equal(
      texts["capabilities.untrustedWorkspaces.description"],
      PACKAGE.capabilities.untrustedWorkspaces.description,
    );
  });

  it("are put back where they were", () => {
    assert.notDeepEqual(manifest, PACKAGE);
    assert.deepEqual(withTexts(manifest, texts), PACKAGE);
  });

  it("keep their keys when another element is added", () => {
    const { viewsWelcome } = PACKAGE.contributes;
    const added = { view: "irscope.runs", contents: "Something else that is shown before the others." };
    const contributes = { ...PACKAGE.contributes, viewsWelcome: [added, ...viewsWelcome] };
    const after = externalized({ ...PACKAGE, contributes }).texts;
    assert.equal(Object.keys(after).length, Object.keys(texts).length + 1);
    assert.deepEqual({ ...after, ...texts }, after);
  });

  it("are not what a setting holds", () => {
    const contributes = { configuration: { properties: { setting: { default: { title: "A value" } } } } };
    assert.deepEqual(externalized({ ...PACKAGE, contributes }).manifest["contributes"], contributes);
  });

  it("are all that the manifest has, but for names and data", () => {
    const kept = new Set();
    /** @param {any} value @param {string} key */
    const look = (value, key) => {
      if (typeof value === "string") {
        kept.add(/\w \w/.test(value) && key !== "when" && key !== "enablement" ? value : "");
      } else {
        Object.entries(value ?? {}).forEach(([name, each]) => look(each, Array.isArray(value) ? key : name));
      }
    };
    look(manifest["contributes"], "");
    kept.delete("");
    // Names of languages, and of launch configurations, which go into the user's launch.json.
    assert.deepEqual([...kept].sort(), [
      "Debug Compilation",
      "LLVM IR",
      "Python Bytecode",
      "Stored Run",
      "TorchDynamo Guards",
    ]);
  });
});

describe("the texts of the extension", () => {
  it("are all in the bundle for translators", async function () {
    this.timeout(60_000); // Two parsers, one of them in WebAssembly.
    const used = filesOfHost().flatMap((file) => {
      const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest);
      return textsPassedIn(source, source);
    });
    assert.ok(used.length > 80, `${used.length} were found`);
    const texts = await textsOfSource();
    assert.deepEqual(Object.keys(texts).sort(), [...new Set(used)].sort());
    for (const [key, text] of Object.entries(texts)) {
      assert.equal(text, key);
    }
  });
});

/** What a part of a file passes to `vscode.l10n.t`, found another way than for the bundle. @param {ts.Node} node @param {ts.SourceFile} source @returns {string[]} */
function textsPassedIn(node, source) {
  const own = [];
  if (ts.isCallExpression(node) && node.expression.getText(source) === "vscode.l10n.t") {
    const [text] = node.arguments;
    own.push(text !== undefined && ts.isStringLiteral(text) ? text.text : "no literal");
  }
  /** @type {string[]} */
  const below = [];
  ts.forEachChild(node, (child) => void below.push(...textsPassedIn(child, source)));
  return [...own, ...below];
}
