/** The licences of what is packed with irscope. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { noticesText } from "../../../scripts/lib/notices.mjs";

describe("the notices of other software", () => {
  /** @type {string} */
  let root;
  beforeEach(() => {
    root = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-notices-"));
    fs.mkdirSync(path.join(root, "libs"));
  });
  afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

  const write = (/** @type {string} */ file, /** @type {string} */ text) => {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), text);
  };
  const manifest = (/** @type {object} */ more) => JSON.stringify({ name: "a", version: "1.2.3", ...more });
  const text = () =>
    noticesText(["src/x.ts", "node_modules/a/lib/x.js", "node_modules/a/y.js"], root, path.join(root, "libs"));

  it("names each package once, with its licence, its source and its text", () => {
    write("node_modules/a/package.json", manifest({ license: "EPL-2.0", repository: "github:kind/a" }));
    write("node_modules/a/LICENSE.md", "The text.\n");
    write(
      "libs/b-2.0.dist-info/METADATA",
      "Name: b\nVersion: 2.0\nClassifier: License :: OSI Approved :: MIT License\n\nMore",
    );
    write("libs/b-2.0.dist-info/licenses/LICENSE", "MIT text");
    const parts = text()
      .split(/\n\n-{80}\n\n/)
      .slice(1);
    assert.deepEqual(parts, [
      "a 1.2.3 (EPL-2.0)\nhttps://github.com/kind/a\nThe source code of a 1.2.3 is available from that address.\n\nThe text.",
      "b 2.0 (MIT License)\n\nMIT text",
    ]);
  });

  it("fails for a package that does not say its licence, and for one without the text", () => {
    write("node_modules/a/package.json", manifest({}));
    write("node_modules/a/LICENSE", "The text.");
    assert.throws(text, /a does not say what its licence is/);
    write("node_modules/a/package.json", manifest({ license: "MIT" }));
    fs.rmSync(path.join(root, "node_modules/a/LICENSE"));
    assert.throws(text, /a has no licence text/);
  });
});
