/** How code-server is started: on a busy machine once more, and a failure says what is to be done about it. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { startEditor } from "../../../scripts/lib/codeServer.mjs";

/** Stands in for code-server: it ends so often with the words before it listens. @param {number} failures @param {string} words */
const entry = (failures, words) => `\
const fs = require("node:fs"), http = require("node:http"), path = require("node:path");
const counter = path.join(__dirname, "starts");
const starts = fs.existsSync(counter) ? Number(fs.readFileSync(counter, "utf8")) + 1 : 1;
fs.writeFileSync(counter, String(starts));
if (starts <= ${failures}) {
  console.log(${JSON.stringify(words)});
  process.exit(1);
}
http.createServer((_, response) => response.end("{}")).listen(process.argv[process.argv.indexOf("--socket") + 1]);
`;

describe("the start of code-server", function () {
  this.timeout(60_000); // several processes, one after the other
  /** @type {string} */
  let home;
  beforeEach(() => (home = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-start-"))));
  afterEach(() => fs.rmSync(home, { recursive: true, force: true }));

  /** @param {number} failures @param {string} words */
  const started = (failures, words) => {
    const file = path.join(home, "entry.cjs");
    fs.writeFileSync(file, entry(failures, words));
    return startEditor({ codeServer: { node: process.execPath, entry: file }, home, settings: {} });
  };

  it("is tried again where its second process came late", async () => {
    const editor = await started(2, "[2026-11-28T18:34:09.736Z] error timed out");
    await editor.stop();
    assert.equal(fs.readFileSync(path.join(home, "starts"), "utf8"), "3");
  });

  it("fails with what helps", async () => {
    await assert.rejects(started(9, "error timed out"), /error timed out[^]*→ The machine is too busy/);
    fs.rmSync(path.join(home, "starts"));
    await assert.rejects(started(9, "Cannot find module"), /Cannot find module[^]*remove its folder in the cache/);
    assert.equal(fs.readFileSync(path.join(home, "starts"), "utf8"), "1", "that is not tried again");
  });
});
