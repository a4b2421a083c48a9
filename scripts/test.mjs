/**
 * `npm test`: sets up and runs every tier, and ends with one line that sums them up.
 * `npm test -- --tier plain|worker|protocol|editor` runs one; what follows goes to pytest, or names editor tests.
 */

import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ensureBuilt } from "./build.mjs";
import { check } from "./check.mjs";
import { OUT, ROOT, VENV_PYTHON } from "./lib/paths.mjs";
import { bold, Failure, runMain } from "./lib/terminal.mjs";
import { ensureChromium, ensureCodeServer, ensureCompiler, ensureNodeModules, ensureVenv } from "./setup.mjs";

const PYTHON_TIERS = ["plain", "worker", "protocol"];
const TIERS = [...PYTHON_TIERS, "editor"];
/** pytest's exit code when a selection leaves nothing to run. */
const NO_TESTS = 5;

/** @typedef {{passed: number, failed: number, skipped: number}} Counts */

await runMain(async () => {
  const { tier, rest } = parse(process.argv.slice(2));
  const tiers = tier === undefined ? TIERS : [tier];
  ensureCompiler();
  await ensureVenv("test");
  await ensureNodeModules();
  if (tiers.includes("editor")) {
    await ensureChromium();
    await ensureCodeServer();
  }
  if (tiers.includes("protocol")) {
    await ensureBuilt(); // the page of `irscope view` is served by tests of the protocol
  }
  fs.mkdirSync(OUT, { recursive: true });
  /** @type {Counts} */
  const total = { passed: 0, failed: 0, skipped: 0 };
  if (tier === undefined) {
    title("checks");
    total.failed += await check();
  }
  for (const name of tiers) {
    title(name);
    const counts = name === "editor" ? await runEditor(rest) : await runPytest(name, rest);
    for (const key of /** @type {const} */ (["passed", "failed", "skipped"])) {
      total[key] += counts[key];
    }
  }
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0 ? 0 : 1;
});

/** @param {string[]} args */
function parse(args) {
  const at = args.indexOf("--tier");
  if (at < 0) {
    if (args.length > 0) {
      throw new Failure(
        `Unknown argument: ${args.join(" ")}`,
        `npm test [-- --tier ${TIERS.join("|")} [arguments of pytest, or a pattern]]`,
      );
    }
    return { tier: undefined, rest: [] };
  }
  const tier = args[at + 1] ?? "";
  if (!TIERS.includes(tier)) {
    throw new Failure(`There is no tier "${tier}".`, `The tiers are ${TIERS.join(", ")}.`);
  }
  return { tier, rest: args.filter((_, index) => index !== at && index !== at + 1) };
}

/** @param {string} tier @param {string[]} rest @returns {Promise<Counts>} */
async function runPytest(tier, rest) {
  const report = path.join(OUT, `pytest-${tier}.xml`);
  fs.rmSync(report, { force: true });
  // A test of the worker is mostly one process that compiles, one of the protocol mostly waits for a process to start, so
  // two at a time keep a small machine busy.  Tests that share a run stay together (see conftest.py), the largest groups
  // first.
  const parallel = tier === "plain" ? [] : ["-n", "2", "--dist", "loadgroup"];
  const args = ["-m", "pytest", path.join("tests", tier), `--junitxml=${report}`, ...parallel, ...rest];
  const exit = await new Promise((/** @type {(code: number) => void} */ resolve, reject) => {
    const child = spawn(VENV_PYTHON, args, { cwd: ROOT, stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
  const counts = fs.existsSync(report)
    ? countsOf(fs.readFileSync(report, "utf8"))
    : { passed: 0, failed: 0, skipped: 0 };
  // A run that broke down, or found nothing where nothing was selected, is a failure even if no test is.
  const brokeDown = exit !== 0 && counts.failed === 0 && !(exit === NO_TESTS && rest.length > 0);
  return brokeDown ? { ...counts, failed: 1 } : counts;
}

/** @param {string} xml pytest's JUnit report @returns {Counts} */
function countsOf(xml) {
  const suite = /<testsuite\b[^>]*>/.exec(xml)?.[0] ?? "";
  const number = (/** @type {string} */ name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(suite)?.[1] ?? 0);
  const failed = number("failures") + number("errors");
  const skipped = number("skipped");
  return { passed: number("tests") - failed - skipped, failed, skipped };
}

/** @param {string[]} rest @returns {Promise<Counts>} */
async function runEditor(rest) {
  const { runEditorTests } = await import("../tests/editor/run.mjs");
  return runEditorTests({ grep: rest.join(" ") });
}

/** @param {string} text */
function title(text) {
  console.log(`\n${bold(`== ${text} ==`)}`);
}
