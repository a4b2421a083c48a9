/** A headless Chromium, and the extension's tests inside the extension host of a VS Code that it shows. */

import * as fs from "node:fs";
import * as path from "node:path";
import * as esbuild from "esbuild";
import { chromium } from "playwright-core";
import { startEditor } from "../../scripts/lib/codeServer.mjs";
import { OUT, ROOT, SCREENSHOTS } from "../../scripts/lib/paths.mjs";
import { ensureChromium, ensureCodeServer } from "../../scripts/setup.mjs";
import { makeHome } from "./home.mjs";
import { PATIENCE_MS } from "./until.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const API_PATIENCE_MS = 900_000;

/** Settings for an editor in which nothing moves by itself: without a GPU each frame of it is drawn by the processor. */
export const STILL = { "workbench.reduceMotion": "on", "editor.cursorBlinking": "solid" };
const SPINS = ".codicon-modifier-spin, .progress-bit { animation: none !important; }";

/** Opens a folder in an editor whose settings are `STILL`. @param {import("playwright-core").Page} page @param {string} address */
export async function openEditor(page, address) {
  await page.goto(address);
  await page.addStyleTag({ content: SPINS });
}

/** @returns {Promise<import("playwright-core").Browser>} */
export async function launchBrowser() {
  return chromium.launch({ executablePath: await ensureChromium(), args: FLAGS, headless: true });
}

/**
 * @typedef {object} Results
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} lines
 * @property {import("../../scripts/lib/durations.mjs").Timed[]} tests
 * @property {import("../../scripts/lib/durations.mjs").Failed[]} failures
 * @property {string[]} retried
 */

/**
 * Runs suites of compiled Mocha tests, one after the other, each in a fresh window of the same editor.
 * @param {object} options
 * @param {string[]} options.suites folders under tests/editor
 * @param {NodeJS.ProcessEnv} options.env
 * @param {Record<string, unknown>} options.settings
 * @param {string} options.folder what is open
 * @param {string} [options.grep]
 * @param {boolean} [options.trusted]
 * @returns {Promise<{exit: number, results: Results}[]>} what the extension host said, and what the tests did
 */
export async function runInExtensionHost({ suites, env, settings, folder, grep = "", trusted = true }) {
  const home = makeHome("editor");
  const resultsFile = path.join(home, "results.json");
  const editor = await startEditor({
    codeServer: await ensureCodeServer(),
    home,
    settings: { ...STILL, ...settings },
    trusted,
    flags: ["--vscode-option", "enable-smoke-test-driver"],
    env: { ...env, IRSCOPE_TEST_RESULTS: resultsFile, IRSCOPE_TEST_GREP: grep },
  });
  const browser = await launchBrowser();
  const outcomes = [];
  try {
    for (const suite of suites) {
      fs.rmSync(resultsFile, { force: true });
      const tests = await compile(suite);
      const page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      const remote = (/** @type {string} */ file) => `vscode-remote://${new URL(editor.origin).host}${file}`;
      const payload = JSON.stringify([
        ["extensionDevelopmentPath", remote(ROOT)],
        ["extensionTestsPath", remote(tests)],
      ]);
      const exited = new Promise((/** @type {(code: number) => void} */ resolve) => {
        void page.exposeFunction("codeAutomationLog", () => undefined);
        void page.exposeFunction("codeAutomationExit", (/** @type {number} */ code) => resolve(code));
      });
      const late = new Promise((/** @type {(code: number) => void} */ resolve) => {
        setTimeout(resolve, API_PATIENCE_MS, 124).unref();
      });
      await openEditor(page, editor.address(folder, { payload }));
      const exit = await Promise.race([exited, late]);
      if (exit === 124) {
        await page.screenshot({ path: path.join(SCREENSHOTS, `stuck-${path.basename(suite)}.png`) });
      }
      outcomes.push({ exit, results: readResults(resultsFile, suite, exit) });
      await page.close();
    }
  } finally {
    await browser.close();
    await editor.stop();
    fs.rmSync(home, { recursive: true, force: true });
  }
  return outcomes;
}

/** @param {string} file @param {string} suite @param {number} exit @returns {Results} */
function readResults(file, suite, exit) {
  if (fs.existsSync(file)) {
    return JSON.parse(fs.readFileSync(file, "utf8"));
  }
  const line = `  ✗ ${suite}: the extension host gave no results (exit ${exit}); see .screenshots/`;
  return { passed: 0, failed: 1, skipped: 0, lines: [line], tests: [], failures: [], retried: [] };
}

/** Bundles a folder of tests with the Mocha entry. @param {string} suite @returns {Promise<string>} the entry's file */
async function compile(suite) {
  const source = path.join(ROOT, "tests", "editor", suite);
  const target = path.join(OUT, "tests", suite);
  fs.rmSync(target, { recursive: true, force: true });
  const tests = fs
    .readdirSync(source)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => path.join(source, name));
  await esbuild.build({
    entryPoints: [path.join(ROOT, "tests", "editor", "api", "index.ts"), ...tests],
    outdir: target,
    entryNames: "[name]",
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    sourcemap: "inline",
    external: ["vscode", "mocha"],
    logLevel: "warning",
  });
  return path.join(target, "index.js");
}
