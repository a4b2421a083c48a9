/** The page of `irscope view` gives panels the colours that VS Code would. */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";

const SOURCES = path.join(ROOT, "extension", "src");

describe("the page's theme", () => {
  it("defines every colour that a panel uses without another to fall back on", () => {
    const defined = new Set(namesIn(path.join(SOURCES, "view", "theme.css"), /(--vscode-[\w-]+)\s*:/g));
    const files = fs.readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
    const styles = files.filter((file) => /\.(css|ts)$/.test(file)).map((file) => path.join(SOURCES, file));
    const used = styles.flatMap((file) => namesIn(file, /var\((--vscode-[\w-]+)\)/g));
    assert.ok(used.length > 50, "the pattern finds the uses");
    assert.deepEqual([...new Set(used)].filter((name) => !defined.has(name)).sort(), []);
  });
});

/** @param {string} file @param {RegExp} pattern */
function namesIn(file, pattern) {
  return [...fs.readFileSync(file, "utf8").matchAll(pattern)].map(([, name = ""]) => name);
}
