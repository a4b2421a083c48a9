/** The editor tier: the packed extension, the extension in a real VS Code in a browser, and what is drawn there. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import Mocha from "mocha";
import { emptyReport } from "../../scripts/lib/durations.mjs";
import { OUT, ROOT, VENV_PYTHON } from "../../scripts/lib/paths.mjs";
import { runMain } from "../../scripts/lib/terminal.mjs";
import { ensureVsix } from "../../scripts/package.mjs";
import { runInExtensionHost } from "./browser.mjs";
import { mochaHooks } from "./retries.mjs";

/** @typedef {import("../../scripts/lib/durations.mjs").TierReport} TierReport */

const HERE = path.join(ROOT, "tests", "editor");

/** @param {{grep?: string, all?: boolean}} [options] @returns {Promise<TierReport>} */
export async function runEditorTests({ grep = "", all = false } = {}) {
  fs.mkdirSync(OUT, { recursive: true });
  Object.assign(process.env, ENVIRONMENT, all ? { IRSCOPE_TEST_ALL: "1" } : {});
  const report = emptyReport();
  await runModelTests(report, grep);
  await ensureVsix();
  await runApiTests(report, grep, all);
  await runNodeTests(report, grep, all || grep !== "");
  return report;
}

/** What needs neither an editor nor a browser: a second or two. @param {TierReport} report @param {string} grep */
async function runModelTests(report, grep) {
  console.log("\nModels of the panels");
  const mocha = new Mocha({ ui: "bdd", reporter: "spec", timeout: TEST_MS, ...(grep === "" ? {} : { grep }) });
  const folder = path.join(HERE, "models");
  for (const name of fs.readdirSync(folder).sort()) {
    mocha.addFile(path.join(folder, name));
  }
  await mocha.loadFilesAsync();
  await run(mocha, report);
}

/** The extension against a server with canned answers. @param {TierReport} report @param {string} grep @param {boolean} all */
async function runApiTests(report, grep, all) {
  console.log("\nIn the extension host");
  const fake = { IRSCOPE_LAUNCHER: path.join(HERE, "fake_server", "launch.py") };
  const common = { env: fake, settings: { "irscope.python": VENV_PYTHON }, folder: path.join(HERE, "workspace") };
  // `typing` types for a minute while deep runs go on.
  const suites = ["api", ...(all ? ["api_typing", "api_failing"] : [])];
  const [api, typing, failing] = await runInExtensionHost({ ...common, suites, grep });
  add(report, api?.results);
  if (all) {
    add(report, typing?.results);
    const selfCheck = failing?.exit !== 0 && failing?.results.failed === 1;
    tell(report, selfCheck, "a failing test in the extension host fails the command");
  }
  if (grep === "") {
    const [restricted] = await runInExtensionHost({
      ...common,
      folder: path.join(HERE, "restricted_workspace"),
      suites: ["api_restricted"],
      trusted: false,
    });
    add(report, restricted?.results);
  }
}

/** As `tests/conftest.py` sets them: the tiers share compiled kernels, and no process starts another one to test the processor. */
const ENVIRONMENT = { OMP_NUM_THREADS: "1", TORCHINDUCTOR_VEC_ISA_OK: "1" };

/** When a test is given up: one that hangs, on a machine that is five times slower than it should be. */
const TEST_MS = 600_000;

/** What takes minutes, and begins first: `rendering` runs the same example as `start`, whose kernels are compiled by then. */
const LONG = ["start", "source", "debugging", "rendering", "view", "graphStates", "hostile", "gpuViews", "linkedViews"];

/**
 * What only `npm run test:all` runs, and who asks for it: the tutorial goes where `rendering` and `source` go; that VS Code
 * takes the files of a translation is its own affair, and models' tests look at what is in ours; `gpuViews` and
 * `linkedViews` link on the screen what `linked` links in the extension host; `comparisonPage` shows the table of
 * `viewComparison`; `library`, `pipelines` and `entries` walk where the tests of the protocol go; `hostile` shows in VS
 * Code's own parts the texts that each panel's tests and `test_hostile_texts` look at.
 */
const NIGHTLY = [
  "tutorial.test.mjs",
  "library.test.mjs",
  "l10n.test.mjs",
  "linkedViews.test.mjs",
  "gpuViews.test.mjs",
  "hostile.test.mjs",
  "pipelines.test.mjs",
  "entries.test.mjs",
  "viewComparison.test.mjs",
];

/**
 * Tests that run in Node: rendering, packing, isolation, the scripts. Two files at a time, each in a process of its own:
 * half of the time a window waits for something.
 * @param {TierReport} report @param {string} grep @param {boolean} all
 */
async function runNodeTests(report, grep, all) {
  const require = [path.join(HERE, "retries.mjs")];
  const common = { ui: /** @type {const} */ ("bdd"), timeout: TEST_MS, reporter: "spec", require };
  const mocha = new Mocha(grep === "" ? { ...common, parallel: true, jobs: 2 } : { ...common, grep });
  const folder = path.join(HERE, "node");
  const names = fs.readdirSync(folder).filter((each) => each.endsWith(".test.mjs") && (all || !NIGHTLY.includes(each)));
  const place = (/** @type {string} */ name) => {
    const at = LONG.indexOf(name.replace(".test.mjs", ""));
    return at < 0 ? LONG.length : at;
  };
  for (const name of names.sort((left, right) => place(left) - place(right) || left.localeCompare(right))) {
    mocha.addFile(path.join(folder, name));
  }
  if (grep !== "") {
    mocha.rootHooks(mochaHooks);
    await mocha.loadFilesAsync();
  }
  await run(mocha, report);
}

/** @param {Mocha} mocha @param {TierReport} report */
async function run(mocha, report) {
  const { counts } = report;
  const timed = (/** @type {Mocha.Runnable} */ { file = "", duration = 0 }, /** @type {string} */ name) =>
    report.tests.push({ file: path.basename(file), name, seconds: duration / 1000 });
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    mocha
      .run(() => resolve())
      .on("pass", (test) => {
        counts.passed += 1;
        timed(test, test.fullTitle());
      })
      .on("fail", (test, error) => {
        counts.failed += 1;
        report.failures.push({ title: test.fullTitle(), message: error.stack ?? error.message });
        timed(test, test.fullTitle());
      })
      .on("pending", () => (counts.skipped += 1))
      .on("retry", (test, error) => {
        report.retried.push(test.fullTitle());
        console.log(`  ${test.fullTitle()}: once more, since it failed:\n${error.stack ?? error.message}`);
      })
      .on("hook end", (hook) => timed(hook, hook.title));
  });
}

/** @param {TierReport} report @param {import("./browser.mjs").Results | undefined} results */
function add(report, results) {
  if (results === undefined) {
    tell(report, false, "the extension host gave no results");
    return;
  }
  report.counts.passed += results.passed;
  report.counts.failed += results.failed;
  report.counts.skipped += results.skipped;
  report.tests.push(...results.tests);
  report.failures.push(...results.failures);
  report.retried.push(...results.retried);
  console.log(results.lines.join("\n"));
}

/** @param {TierReport} report @param {boolean} passed @param {string} title */
function tell(report, passed, title) {
  report.counts[passed ? "passed" : "failed"] += 1;
  if (!passed) {
    report.failures.push({ title, message: "" });
  }
  console.log(`  ${passed ? "✓" : "✗"} ${title}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    const args = process.argv.slice(2);
    const file = args[0] === "--report" ? args.splice(0, 2)[1] : undefined;
    const all = args[0] === "--all" && args.shift() !== undefined;
    const report = await runEditorTests({ grep: args.join(" "), all });
    if (file !== undefined) {
      fs.writeFileSync(file, JSON.stringify(report));
    }
    const { passed, failed, skipped } = report.counts;
    console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
    return failed === 0 ? 0 : 1;
  });
}
