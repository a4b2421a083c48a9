/** What the tiers say of themselves at their end: which tests failed, and where the time went. */

import * as fs from "node:fs";
import * as path from "node:path";

const SLOWEST = 40;
const FILES = 25;
/** The most lines of what a failed test said; its end is what fits on a screen. */
const MESSAGE_LINES = 15;
/** How many runs the memory of retried tests goes back. */
const RUNS_KEPT = 20;

/** @typedef {{file: string, name: string, seconds: number}} Timed */
/** @typedef {{title: string, message: string}} Failed */
/** @typedef {{passed: number, failed: number, skipped: number}} Counts */
/**
 * What a tier says of itself at its end.
 * @typedef {object} TierReport
 * @property {Counts} counts
 * @property {Timed[]} tests
 * @property {Failed[]} failures
 * @property {string[]} retried titles of the tests that passed or failed at the second attempt
 */

/** @returns {Counts} */
export function noCounts() {
  return { passed: 0, failed: 0, skipped: 0 };
}

/** @returns {TierReport} */
export function emptyReport() {
  return { counts: noCounts(), tests: [], failures: [], retried: [] };
}

/** @param {string} file pytest's JUnit report @returns {TierReport} */
export function readJUnit(file) {
  if (!fs.existsSync(file)) {
    return emptyReport();
  }
  const xml = fs.readFileSync(file, "utf8");
  const suite = /<testsuite\b[^>]*>/.exec(xml)?.[0] ?? "";
  const number = (/** @type {string} */ name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(suite)?.[1] ?? 0);
  const failed = number("failures") + number("errors");
  const skipped = number("skipped");
  const tests = [...xml.matchAll(/<testcase classname="([^"]*)" name="([^"]*)" time="([\d.]+)"/g)].map(
    ([, file = "", name = "", seconds = "0"]) => ({ file, name: unescaped(name), seconds: Number(seconds) }),
  );
  const testcase = /<testcase classname="([^"]*)" name="([^"]*)"[^>]*>\s*<(?:failure|error)\b[^>]*>([^<]*)/g;
  const failures = [...xml.matchAll(testcase)].map(([, file = "", name = "", message = ""]) => ({
    title: `${file} ${unescaped(name)}`,
    message: unescaped(message),
  }));
  return { counts: { passed: number("tests") - failed - skipped, failed, skipped }, tests, failures, retried: [] };
}

/** @param {string} file what a tier that is not pytest's wrote @returns {TierReport} */
export function readReport(file) {
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : emptyReport();
}

/**
 * The slowest tests of a tier and the sum for each of its files, as lines.
 * @param {string} tier @param {TierReport} report @param {number} seconds how long the tier took
 */
export function durations(tier, report, seconds) {
  const bySeconds = (/** @type {{seconds: number}} */ left, /** @type {{seconds: number}} */ right) =>
    right.seconds - left.seconds;
  /** @type {Map<string, Timed>} */
  const files = new Map();
  for (const { file, seconds: each } of report.tests) {
    const sum = files.get(file) ?? { file, name: "", seconds: 0 };
    files.set(file, { ...sum, seconds: sum.seconds + each });
  }
  const sum = report.tests.reduce((total, each) => total + each.seconds, 0);
  const line = (/** @type {Timed} */ { seconds: each, file, name }) =>
    `${each.toFixed(1).padStart(8)} s  ${[file, name].filter((part) => part !== "").join(" ")}`;
  return [
    `${tier}: ${seconds.toFixed(0)} s, its tests ${sum.toFixed(0)} s together; its files`,
    ...[...files.values()].sort(bySeconds).slice(0, FILES).map(line),
    `${tier}: its slowest tests`,
    ...[...report.tests].sort(bySeconds).slice(0, SLOWEST).map(line),
  ];
}

/** Which tests failed, with the end of what each said. @param {string} tier @param {TierReport} report */
export function failureLines(tier, report) {
  return report.failures.flatMap(({ title, message }) => {
    const said = message.trim().split("\n").slice(-MESSAGE_LINES);
    return [`Failed: ${tier}: ${title}`, ...said.map((line) => `    ${line}`)];
  });
}

/**
 * Notes which tests needed a second attempt in this run, and says how often each did lately.
 * @param {string} memory the file that keeps it @param {string[]} retried @returns {string[]} lines for the summary
 */
export function retriedLines(memory, retried) {
  /** @type {string[][]} */
  let runs = [];
  try {
    runs = JSON.parse(fs.readFileSync(memory, "utf8"));
  } catch {
    // The first run, or a damaged file.
  }
  runs = [...runs, [...new Set(retried)]].slice(-RUNS_KEPT);
  fs.mkdirSync(path.dirname(memory), { recursive: true });
  fs.writeFileSync(memory, JSON.stringify(runs));
  return [...new Set(retried)].map((title) => {
    const times = runs.filter((run) => run.includes(title)).length;
    const again = times > 1 ? ` (in ${times} of the last ${runs.length} runs: find the cause)` : "";
    return `Retried: ${title}${again}`;
  });
}

/** @param {string} text */
function unescaped(text) {
  return text
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#10;/g, "\n")
    .replace(/&apos;/g, "'")
    .replace(/&amp;/g, "&");
}
