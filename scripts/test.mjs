/**
 * `npm test`: sets up and runs every tier, and ends with one line that sums them up.
 * `npm test -- --tier plain|worker|protocol|editor` runs one; what follows goes to pytest, or names editor tests.
 * `npm test -- --changed [BASE]` runs the test files that what has changed concerns (see changed_tests.py).
 * `npm run test:all` also runs what is marked `nightly`: more models of the same sort.
 */

import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ensureBuilt } from "./build.mjs";
import {
  durations,
  emptyReport,
  failureLines,
  noCounts,
  readReport,
  readJUnit,
  retriedLines,
} from "./lib/durations.mjs";
import { kernelFolder } from "./lib/kernels.mjs";
import { CACHE, OUT, ROOT, VENV_PYTHON } from "./lib/paths.mjs";
import { noteSeconds } from "./lib/seconds.mjs";
import { bold, Failure, runMain } from "./lib/terminal.mjs";
import { Turns } from "./lib/turns.mjs";
import { ensureVsix } from "./package.mjs";
import {
  ensureChromium,
  ensureCodeServer,
  ensureCompiler,
  ensureEditors,
  ensureEmptyVenv,
  ensureGraphviz,
  ensureNodeModules,
  ensureVenv,
  TORCH,
} from "./setup.mjs";

const SET_UP = "set-up";
/** These need no Python: they begin while pip, which keeps one core busy for a minute, still installs. */
const NODE_CHECKS = "checks of TypeScript";
const PYTHON_CHECKS = "checks of Python";
const CHECKS = [NODE_CHECKS, PYTHON_CHECKS];
/**
 * The tiers, one after the other, in three rows side by side, so that others compute while those of the editor and of the
 * protocol wait for a window or a process. The worker tier is the longest, and keeps two cores busy by itself at the end.
 */
const ROWS = [["worker"], [PYTHON_CHECKS, "editor"], ["plain", "protocol"]];
/** These begin while npm still installs. */
const NEED_NO_NODE = ["worker"];
/** In the order in which they are shown. */
const TIERS = ["plain", "worker", "protocol", "editor"];
/** pytest's exit code when a selection leaves nothing to run. */
const NO_TESTS = 5;
/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
const RETRIED = path.join(CACHE, "retried-tests.json");

/** @typedef {import("./lib/durations.mjs").TierReport} TierReport */
/** @typedef {{report: TierReport, seconds: number}} Done */
/** @typedef {{tier: string | undefined, rest: string[], all: boolean, base?: string | null, files?: string[]}} Asked */

await runMain(async () => {
  const asked = parse(process.argv.slice(2));
  const isFresh = !fs.existsSync(VENV_PYTHON);
  const wanted = asked.base === undefined ? tiersOf(asked) : await concerned(asked);
  const turns = new Turns([SET_UP, ...wanted], (name) => console.log(`\n${bold(`== ${name} ==`)}`));
  /** @type {Map<string, Done>} */
  const done = new Map();
  /** @param {string} name @param {NodeJS.ProcessEnv} [env] */
  const work = async (name, env = {}) => {
    const begun = Date.now();
    const report = await runTier(name, asked, env, turns);
    done.set(name, { report, seconds: (Date.now() - begun) / 1000 });
    turns.end(name);
  };
  const { venv, all } = setUp(wanted, asked.all, () =>
    wanted.includes(NODE_CHECKS) ? work(NODE_CHECKS) : Promise.resolve(),
  );
  all.then(
    () => turns.end(SET_UP),
    () => running.forEach((child) => child.kill()), // Its error is told below.
  );
  await venv;
  const kernels = kernelFolder(TORCH);
  process.on("exit", kernels.remove);
  const env = { IRSCOPE_TEST_KERNELS: kernels.folder, TORCHINDUCTOR_CACHE_DIR: kernels.folder };
  const workThrough = async (/** @type {string[]} */ row) => {
    for (const name of row.filter((each) => wanted.includes(each))) {
      await (NEED_NO_NODE.includes(name) ? venv : all);
      await work(name, env);
    }
  };
  await Promise.all([all.then(({ early }) => early), ...ROWS.map(workThrough)]);
  const total = summarize(wanted, done);
  if (total.failed === 0) {
    kernels.keep();
    if (isFresh && !asked.all && asked.tier === undefined && asked.base === undefined) {
      noteSeconds("suite", process.uptime());
    }
  }
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0 ? 0 : 1;
});

/** @param {Asked} asked */
function tiersOf({ tier }) {
  return tier === undefined ? [...CHECKS, ...TIERS] : [tier];
}

/** The checks, and the tiers that what has changed concerns. @param {Asked} asked whose `files` it sets @returns {Promise<string[]>} */
async function concerned(asked) {
  await ensureVenv("test");
  const script = path.join("scripts", "changed_tests.py");
  const printed = execFileSync(VENV_PYTHON, [script, ...(asked.base ? [asked.base] : [])], {
    cwd: ROOT,
    encoding: "utf8",
  });
  /** @type {{everything: string | null, pytest: string[], editor: boolean, of: number}} */
  const { everything, pytest, editor, of } = JSON.parse(printed);
  if (everything !== null) {
    console.log(`All ${of} test files and the editor's tests run: ${everything}.`);
    return tiersOf(asked);
  }
  asked.files = pytest;
  console.log(`${pytest.length} of ${of} test files run, and ${editor ? "all" : "none"} of the editor's.`);
  const isConcerned = (/** @type {string} */ tier) =>
    tier === "editor" ? editor : pytest.some((file) => file.startsWith(`tests/${tier}/`));
  return [...CHECKS, ...TIERS.filter(isConcerned)];
}

/** @param {string[]} args @returns {Asked} */
function parse(args) {
  const all = args.includes("--all");
  if (args[0] === "--changed" && args.filter((each) => each !== "--all").length <= 2) {
    return { tier: undefined, rest: [], all, base: args.find((each) => !each.startsWith("--")) ?? null };
  }
  const others = args.filter((each) => each !== "--all");
  const at = others.indexOf("--tier");
  if (at < 0) {
    if (others.length > 0) {
      throw new Failure(
        `Unknown argument: ${others.join(" ")}`,
        `npm test [-- --changed [BASE] | --tier ${TIERS.join("|")} [arguments of pytest, or a pattern]]`,
      );
    }
    return { tier: undefined, rest: [], all };
  }
  const tier = others[at + 1] ?? "";
  if (!TIERS.includes(tier)) {
    throw new Failure(`Unknown tier: "${tier}".`, `Known: ${TIERS.join(", ")}.`);
  }
  return { tier, rest: others.filter((_, index) => index !== at && index !== at + 1), all };
}

/**
 * @param {string[]} wanted @param {boolean} nightly whether what only `npm run test:all` needs is set up, too
 * @param {() => Promise<void>} early what needs no Python and may begin before all is set up
 * @returns {{venv: Promise<void>, all: Promise<{early: Promise<void>}>}} when `.venv` is set up, and when all is; what
 * began early may still go on
 */
function setUp(wanted, nightly, early) {
  ensureCompiler();
  // Beside each other: pip keeps one core busy for a minute, and all the rest needs no more than its `.venv`.
  const empty = ensureEmptyVenv();
  const venv = empty.then(() => ensureVenv("test"));
  const node = empty.then(() => setUpNode(wanted)).then(() => ({ early: early() }));
  return { venv, all: Promise.all([node, venv]).then(([begun]) => setUpSystem(wanted, nightly).then(() => begun)) };
}

/** One after the other, and not beside pip: apt has a lock, and may ask for much of the network. @param {string[]} wanted @param {boolean} nightly */
async function setUpSystem(wanted, nightly) {
  if (wanted.includes("plain")) {
    await ensureGraphviz();
  }
  if (wanted.includes("protocol") && nightly) {
    await ensureEditors();
  }
}

/** @param {string[]} wanted */
async function setUpNode(wanted) {
  fs.mkdirSync(OUT, { recursive: true });
  await ensureNodeModules();
  if (wanted.includes("editor")) {
    await ensureChromium();
    await ensureCodeServer();
    await ensureVsix();
  }
  if (wanted.includes("protocol")) {
    await ensureBuilt(); // the page of `irscope view` is served by tests of the protocol
  }
}

/**
 * Runs one tier to its end. A run that broke down, or found no test although no filter was given, is a failure even if no
 * test is.
 * @param {string} name @param {Asked} asked @param {NodeJS.ProcessEnv} env @param {Turns} turns @returns {Promise<TierReport>}
 */
async function runTier(name, asked, env, turns) {
  const isEditor = name === "editor";
  const isCheck = CHECKS.includes(name);
  const file = path.join(OUT, isEditor || isCheck ? `${name.replaceAll(" ", "-")}-report.json` : `pytest-${name}.xml`);
  fs.rmSync(file, { force: true });
  const [program, args] = isCheck
    ? [
        process.execPath,
        [path.join("scripts", "check.mjs"), "--part", name === NODE_CHECKS ? "node" : "python", "--report", file],
      ]
    : isEditor
      ? [
          process.execPath,
          [
            path.join("tests", "editor", "run.mjs"),
            "--report",
            file,
            ...(asked.all ? ["--all"] : []),
            asked.rest.join(" "),
          ],
        ]
      : [VENV_PYTHON, pytestArguments(name, file, asked)];
  const exit = await run(program, args, env, (text) => turns.write(name, text), asked.tier !== undefined);
  const report = file.endsWith(".json") ? readReport(file) : readJUnit(file);
  const isFiltered = asked.rest.length > 0 || asked.files !== undefined;
  const nothingSelected = exit === NO_TESTS && !isEditor && isFiltered;
  if (exit !== 0 && report.counts.failed === 0 && !nothingSelected) {
    report.counts.failed = 1;
    report.failures.push({ title: `it ended with ${exit}`, message: "See what it printed above." });
  }
  return report;
}

/** @param {string} tier @param {string} report @param {Asked} asked */
function pytestArguments(tier, report, { rest, all, files }) {
  // Two at a time keep a small machine busy.  Tests that share a run stay together (see conftest.py), the largest groups
  // first.
  const parallel = tier === "plain" ? [] : ["-n", "2", "--dist", "loadgroup"];
  const selected = all ? [] : ["-m", "not nightly"];
  const tests = files?.filter((file) => file.startsWith(`tests/${tier}/`)) ?? [path.join("tests", tier)];
  return ["-m", "pytest", ...tests, `--junitxml=${report}`, ...parallel, ...selected, ...rest];
}

/**
 * @param {string} program @param {string[]} args @param {NodeJS.ProcessEnv} more @param {(text: string) => void} write
 * @param {boolean} alone whether it has the terminal to itself @returns {Promise<number>} the exit code
 */
function run(program, args, more, write, alone) {
  const env = { ...process.env, ...more };
  // Many containers set it. Then each of hundreds of processes would compile all modules that it imports.
  delete env["PYTHONDONTWRITEBYTECODE"];
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: ROOT, env, stdio: alone ? "inherit" : ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", write);
    }
    running.add(child);
    child.on("error", reject);
    child.on("close", (code) => {
      running.delete(child);
      resolve(code ?? 1);
    });
  });
}

/** @param {string[]} wanted @param {Map<string, Done>} done @returns {import("./lib/durations.mjs").Counts} */
function summarize(wanted, done) {
  const total = noCounts();
  /** @type {string[]} */
  const retried = [];
  console.log(`\n${bold("== where the time went ==")}`);
  for (const name of wanted) {
    const { report, seconds } = done.get(name) ?? { report: emptyReport(), seconds: 0 };
    for (const key of /** @type {const} */ (["passed", "failed", "skipped"])) {
      total[key] += report.counts[key];
    }
    retried.push(...report.retried);
    console.log(durations(name, report, seconds).join("\n"));
  }
  if (wanted.includes("editor")) {
    retriedLines(RETRIED, retried).forEach((line) => console.log(line));
  }
  // At the very end: a log that is cut keeps its end.
  console.log(
    ["", ...wanted.flatMap((name) => failureLines(name, done.get(name)?.report ?? emptyReport()))].join("\n"),
  );
  return total;
}
