/** `npm run check`: every linter and type checker, all of them even when one fails. `npm run fmt` (--fix) formats. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { emptyReport } from "./lib/durations.mjs";
import { CACHE, OUT, ROOT, VENV } from "./lib/paths.mjs";
import { execute, runMain, step } from "./lib/terminal.mjs";
import { ensureNodeModules, ensureVenv } from "./setup.mjs";

const python = (/** @type {string} */ name) => path.join(VENV, "bin", name);
const node = (/** @type {string} */ name) => path.join(ROOT, "node_modules", ".bin", name);

const FORMATTED = ["*.mjs", "extension/src/**/*.{ts,css}", "scripts/**/*.mjs", "tests/editor/**/*.{ts,mjs}"];
/** Prettier's options: a file that has not changed is not read again. */
const KEPT = ["--cache", "--cache-strategy", "content", "--cache-location", path.join(OUT, "prettier.json")];

/** What it found of files that have not changed is kept. @param {string} title @param {string} folder @returns {Check} */
function typesOf(title, folder) {
  const kept = path.join(OUT, "tsc", `${title.replaceAll(" ", "-")}.json`);
  return [`tsc: ${title}`, node("tsc"), ["-p", folder, "--incremental", "--tsBuildInfoFile", kept]];
}

/** @typedef {[title: string, command: string, args: string[]]} Check */
/** @type {Check[]} */
const CHECKS = [
  ["generated files", python("python"), ["scripts/generate.py", "--check"]],
  ["plain English", python("python"), ["scripts/plain_english.py"]],
  ["ruff check", python("ruff"), ["check", "."]],
  ["ruff format", python("ruff"), ["format", "--check", "."]],
  // What it knows of torch takes a minute to find out, and is the same for every checkout.
  ["mypy", python("mypy"), ["--cache-dir", path.join(CACHE, "mypy")]],
  ["import-linter", python("lint-imports"), ["--no-logo"]],
  typesOf("extension", "extension/src"),
  typesOf("graph panel", "extension/src/graph"),
  typesOf("panels", "extension/src/panels"),
  typesOf("page of irscope view", "extension/src/view"),
  typesOf("tests", "tests/editor"),
  typesOf("scripts", "scripts"),
  ["eslint", node("eslint"), ["."]],
  ["prettier", node("prettier"), ["--check", ...KEPT, ...FORMATTED]],
];

/** @type {Check[]} */
const FIXES = [
  ["generated files", python("python"), ["scripts/generate.py"]],
  ["ruff check --fix", python("ruff"), ["check", "--fix", "."]],
  ["ruff format", python("ruff"), ["format", "."]],
  ["eslint --fix", node("eslint"), ["--fix", "."]],
  ["prettier", node("prettier"), ["--write", ...KEPT, ...FORMATTED]],
];

/**
 * Two at a time; what rewrites files, one at a time.
 * @param {{fix?: boolean}} [options] @returns {Promise<import("./lib/durations.mjs").Failed[]>} what failed
 */
export async function check({ fix = false } = {}) {
  const waiting = [...(fix ? FIXES : CHECKS)];
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
  await Promise.all(Array.from({ length: fix ? 1 : 2 }, workThrough));
  return failed;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    await ensureVenv("test");
    await ensureNodeModules();
    const failures = await check({ fix: process.argv.includes("--fix") });
    const at = process.argv.indexOf("--report");
    if (at > 0) {
      const report = { ...emptyReport(), counts: { passed: 0, failed: failures.length, skipped: 0 }, failures };
      fs.writeFileSync(process.argv[at + 1] ?? "", JSON.stringify(report));
    }
    return failures.length === 0 ? 0 : 1;
  });
}
