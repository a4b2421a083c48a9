/**
 * `npm run check`: every linter and type checker, all of them even when one fails. `npm run fmt` (--fix) formats.
 * `--part python` or `--part node` runs those that need only these packages (`npm test` begins the latter ones while pip
 * still installs).
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { emptyReport } from "./lib/durations.mjs";
import { CACHE, OUT, ROOT, VENV } from "./lib/paths.mjs";
import { execute, Failure, runMain, step } from "./lib/terminal.mjs";
import { ensureNodeModules, ensureVenv } from "./setup.mjs";

const python = (/** @type {string} */ name) => path.join(VENV, "bin", name);
const node = (/** @type {string} */ name) => path.join(ROOT, "node_modules", ".bin", name);

const FORMATTED = ["*.mjs", "extension/src/**/*.{ts,css}", "scripts/**/*.mjs", "tests/editor/**/*.{ts,mjs}"];
/** What tsc and Prettier keep about files. Another checkout starts with the results of the last one. */
const RESULTS = path.join(OUT, "checks");
const KEPT_RESULTS = path.join(CACHE, "checks");
/** Prettier's options: a file that has not changed is not read again. */
const ONCE = ["--cache", "--cache-strategy", "content", "--cache-location", path.join(RESULTS, "prettier.json")];

/** Type checks of a folder; results of files that have not changed are kept. @param {string} title @param {string} folder @returns {Check} */
function typesOf(title, folder) {
  const kept = path.join(RESULTS, `tsc-${title.replaceAll(" ", "-")}.json`);
  return [`tsc: ${title}`, node("tsc"), ["-p", folder, "--incremental", "--tsBuildInfoFile", kept]];
}

/** @typedef {[title: string, command: string, args: string[]]} Check */
/** @type {Check[]} */
const PYTHON_CHECKS = [
  ["generated files", python("python"), ["scripts/generate.py", "--check"]],
  ["plain English", python("python"), ["scripts/plain_english.py"]],
  ["ruff check", python("ruff"), ["check", "."]],
  ["ruff format", python("ruff"), ["format", "--check", "."]],
  // What it knows of torch takes a minute to find out, and is the same for every checkout.
  ["mypy", python("mypy"), ["--cache-dir", path.join(CACHE, "mypy")]],
  ["import-linter", python("lint-imports"), ["--no-logo"]],
];

/** The longest first. @type {Check[]} */
const NODE_CHECKS = [
  ["eslint", node("eslint"), ["."]],
  typesOf("extension", "extension/src"),
  typesOf("graph panel", "extension/src/graph"),
  typesOf("panels", "extension/src/panels"),
  typesOf("page of irscope view", "extension/src/view"),
  typesOf("tests", "tests/editor"),
  typesOf("scripts", "scripts"),
  ["imports of the extension", process.execPath, ["scripts/imports.mjs"]],
  ["prettier", node("prettier"), ["--check", ...ONCE, ...FORMATTED]],
];

/** @type {Check[]} */
const FIXES = [
  ["generated files", python("python"), ["scripts/generate.py"]],
  ["ruff check --fix", python("ruff"), ["check", "--fix", "."]],
  ["ruff format", python("ruff"), ["format", "."]],
  ["eslint --fix", node("eslint"), ["--fix", "."]],
  ["prettier", node("prettier"), ["--write", ...ONCE, ...FORMATTED]],
];

/** @typedef {"python" | "node"} Part */

/** @param {Part | undefined} part */
function checksOf(part) {
  return [...(part === "node" ? [] : PYTHON_CHECKS), ...(part === "python" ? [] : NODE_CHECKS)];
}

/**
 * Two at a time; what rewrites files, one at a time.
 * @param {{fix?: boolean, part?: Part | undefined}} [options]
 * @returns {Promise<import("./lib/durations.mjs").Failed[]>} what failed
 */
export async function check({ fix = false, part } = {}) {
  const waiting = fix ? [...FIXES] : checksOf(part);
  /** @type {import("./lib/durations.mjs").Failed[]} */
  const failed = [];
  const workThrough = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [title, command, args] = next;
      try {
        await step(title, () => execute(command, args, { cwd: ROOT }));
      } catch (error) {
        const message = String(error instanceof Error ? error.message : error);
        failed.push({ title, message });
        console.error(message);
      }
    }
  };
  if (part !== "python" && !fix) {
    takeKept();
  }
  await Promise.all(Array.from({ length: fix ? 1 : 2 }, workThrough));
  if (part !== "python" && !fix && failed.length === 0) {
    keep();
  }
  return failed;
}

/** What names the checkout's folder in what is kept: Prettier's paths are absolute. */
const ANY_ROOT = "/of/any/checkout/";

function takeKept() {
  fs.mkdirSync(RESULTS, { recursive: true });
  for (const name of fs.existsSync(KEPT_RESULTS) ? fs.readdirSync(KEPT_RESULTS) : []) {
    const target = path.join(RESULTS, name);
    if (!fs.existsSync(target)) {
      fs.writeFileSync(target, fs.readFileSync(path.join(KEPT_RESULTS, name), "utf8").replaceAll(ANY_ROOT, `${ROOT}/`));
    }
  }
}

/** For the next checkout. Another one may do the same at this time, so each file is written beside and moved. */
function keep() {
  fs.mkdirSync(KEPT_RESULTS, { recursive: true });
  for (const name of fs.readdirSync(RESULTS)) {
    const partial = path.join(CACHE, `checks.partial-${process.pid}`);
    fs.writeFileSync(partial, fs.readFileSync(path.join(RESULTS, name), "utf8").replaceAll(`${ROOT}/`, ANY_ROOT));
    fs.renameSync(partial, path.join(KEPT_RESULTS, name));
  }
}

/** @param {string[]} args @returns {Part | undefined} */
function partOf(args) {
  const option = args.indexOf("--part");
  const part = option < 0 ? undefined : args[option + 1];
  if (option >= 0 && part !== "python" && part !== "node") {
    throw new Failure(`Unknown part: "${part ?? ""}".`, "Known: python, node.");
  }
  return /** @type {Part | undefined} */ (part);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    const part = partOf(process.argv);
    if (part !== "node") {
      await ensureVenv("test");
    }
    if (part !== "python") {
      await ensureNodeModules();
    }
    const failures = await check({ fix: process.argv.includes("--fix"), part });
    const option = process.argv.indexOf("--report");
    if (option > 0) {
      const report = { ...emptyReport(), counts: { passed: 0, failed: failures.length, skipped: 0 }, failures };
      fs.writeFileSync(process.argv[option + 1] ?? "", JSON.stringify(report));
    }
    return failures.length === 0 ? 0 : 1;
  });
}
