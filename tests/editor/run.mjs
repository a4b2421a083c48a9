/** The editor tier: the packed extension, the extension in a real VS Code in a browser, and what is drawn there. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import Mocha from "mocha";
import { OUT, ROOT, VENV_PYTHON } from "../../scripts/lib/paths.mjs";
import { runMain } from "../../scripts/lib/terminal.mjs";
import { ensureVsix } from "../../scripts/package.mjs";
import { runInExtensionHost } from "./browser.mjs";

/** @typedef {{passed: number, failed: number, skipped: number}} Counts */

const HERE = path.join(ROOT, "tests", "editor");

/** @param {{grep?: string}} [options] @returns {Promise<Counts>} */
export async function runEditorTests({ grep = "" } = {}) {
  fs.mkdirSync(OUT, { recursive: true });
  await ensureVsix();
  const counts = { passed: 0, failed: 0, skipped: 0 };
  await runApiTests(counts, grep);
  await runNodeTests(counts, grep);
  return counts;
}

/** The extension against a server with canned answers. @param {Counts} counts @param {string} grep */
async function runApiTests(counts, grep) {
  console.log("\nIn the extension host");
  const fake = { IRSCOPE_LAUNCHER: path.join(HERE, "fake_server", "launch.py") };
  const common = { env: fake, settings: { "irscope.python": VENV_PYTHON }, folder: path.join(HERE, "workspace") };
  const [api, failing] = await runInExtensionHost({ ...common, suites: ["api", "api_failing"], grep });
  add(counts, api?.results);
  if (grep === "") {
    const selfCheck = failing?.exit !== 0 && failing?.results.failed === 1;
    tell(counts, selfCheck, "a failing test in the extension host fails the command");
    const [restricted] = await runInExtensionHost({
      ...common,
      folder: path.join(HERE, "restricted_workspace"),
      suites: ["api_restricted"],
      trusted: false,
    });
    add(counts, restricted?.results);
  }
}

/** When a test is given up: one that hangs, on a machine that is five times slower than it should be. */
const TEST_MS = 600_000;

/** What takes minutes, and begins first. */
const LONG = ["rendering", "start", "source", "view", "graphStates", "debugging", "hostile", "linkedViews", "gpuViews"];

/**
 * Tests that run in Node: rendering, packing, isolation, the scripts. Two files at a time, each in a process of its own:
 * half of the time a window waits for something.
 * @param {Counts} counts @param {string} grep
 */
async function runNodeTests(counts, grep) {
  const common = { ui: /** @type {const} */ ("bdd"), timeout: TEST_MS, reporter: "spec" };
  const mocha = new Mocha(grep === "" ? { ...common, parallel: true, jobs: 2 } : { ...common, grep });
  const folder = path.join(HERE, "node");
  const names = fs.readdirSync(folder).filter((each) => each.endsWith(".test.mjs"));
  const place = (/** @type {string} */ name) => {
    const at = LONG.indexOf(name.replace(".test.mjs", ""));
    return at < 0 ? LONG.length : at;
  };
  for (const name of names.sort((left, right) => place(left) - place(right) || left.localeCompare(right))) {
    mocha.addFile(path.join(folder, name));
  }
  if (grep !== "") {
    await mocha.loadFilesAsync();
  }
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    mocha
      .run(() => resolve())
      .on("pass", () => (counts.passed += 1))
      .on("fail", () => (counts.failed += 1))
      .on("pending", () => (counts.skipped += 1));
  });
}

/** @param {Counts} counts @param {import("./browser.mjs").Results | undefined} results */
function add(counts, results) {
  if (results === undefined) {
    tell(counts, false, "the extension host gave no results");
    return;
  }
  counts.passed += results.passed;
  counts.failed += results.failed;
  counts.skipped += results.skipped;
  console.log(results.lines.join("\n"));
}

/** @param {Counts} counts @param {boolean} passed @param {string} title */
function tell(counts, passed, title) {
  counts[passed ? "passed" : "failed"] += 1;
  console.log(`  ${passed ? "✓" : "✗"} ${title}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    const counts = await runEditorTests({ grep: process.argv[2] ?? "" });
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    return counts.failed === 0 ? 0 : 1;
  });
}
