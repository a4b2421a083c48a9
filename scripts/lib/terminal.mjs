/** Running the long steps of the scripts: progress on a terminal, plain lines elsewhere, and errors with a next step. */

import { spawn } from "node:child_process";
import { endsWithUs } from "./stopping.mjs";

const TTY = process.stderr.isTTY === true && process.env["CI"] === undefined;
/** Without a terminal, a sign of life this often. */
const SIGN_OF_LIFE_MS = 20_000;
const LINES_SHOWN_ON_FAILURE = 40;

/** Something the user can do something about: printed without a stack. */
export class Failure extends Error {
  /** @param {string} message @param {string} [next] what the user can do */
  constructor(message, next) {
    super(next === undefined ? message : `${message}\n  → ${next}`);
  }
}

/** Runs `main`, and ends the process with a plain message where it fails. @param {() => Promise<number | void>} main */
export async function runMain(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    console.error(error instanceof Failure ? `\n${red("error")} ${error.message}` : error);
    process.exitCode = 1;
  }
}

/** The steps that go on, in the order of their start: on a terminal they share its last line. @type {Set<() => string>} */
const going = new Set();
/** @type {NodeJS.Timeout | undefined} */
let drawing;
/** How many programs talk to the terminal themselves: nothing is drawn over what they print. */
let talking = 0;

function draw() {
  if (talking > 0) {
    return;
  }
  const width = (process.stderr.columns ?? 80) - 1;
  process.stderr.write(
    `\r\x1b[2K${[...going]
      .map((line) => line())
      .join("  ")
      .slice(0, width)}`,
  );
}

/**
 * Shows what is being done and for how long. Several steps may go on at once.
 * @template T
 * @param {string} title
 * @param {(report: (detail: string) => void) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const started = Date.now();
  const passed = () => `${Math.round((Date.now() - started) / 1000)} s`;
  let detail = "";
  const line = () => `… ${title} (${passed()})${detail === "" ? "" : `  ${detail}`}`;
  /** @type {NodeJS.Timeout | undefined} */
  let signs;
  if (TTY) {
    going.add(line);
    drawing ??= setInterval(draw, 200);
  } else {
    console.error(`… ${title}`);
    const sign = () => console.error(`  ${title}: ${passed()}${detail === "" ? "" : `, ${detail}`}`);
    signs = setInterval(sign, SIGN_OF_LIFE_MS);
  }
  const end = (/** @type {string} */ mark) => {
    clearInterval(signs);
    going.delete(line);
    if (going.size === 0) {
      clearInterval(drawing);
      drawing = undefined;
    }
    console.error(`${TTY ? "\r\x1b[2K" : ""}${mark} ${title} (${passed()})`);
  };
  try {
    const result = await work((text) => {
      detail = text.trim();
    });
    end(green("✓"));
    return result;
  } catch (error) {
    end(red("✗"));
    throw error;
  }
}

/**
 * Runs a program to its end and gives its standard output; throws a Failure with its last lines. With `group` it is killed
 * with all that it started when this process is told to end (see stopping.mjs).
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, env?: NodeJS.ProcessEnv, report?: (detail: string) => void, next?: string, group?: boolean}} [options]
 * @returns {Promise<string>}
 */
export function execute(command, args, { cwd, env, report, next, group = false } = {}) {
  return new Promise((resolve, reject) => {
    const stdio = /** @type {const} */ (["ignore", "pipe", "pipe"]);
    const child = spawn(command, args, { cwd, env: env ?? process.env, stdio: [...stdio], detached: group });
    if (group) {
      endsWithUs(child);
    }
    let stdout = "";
    /** @type {string[]} */
    const lines = [];
    const take = (/** @type {Buffer} */ chunk) => {
      for (const line of chunk.toString().split(/[\r\n]+/)) {
        if (line.trim() !== "") {
          lines.push(line);
          if (!line.startsWith("npm warn")) {
            report?.(line);
          }
        }
      }
      lines.splice(0, Math.max(0, lines.length - LINES_SHOWN_ON_FAILURE));
    };
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
      take(chunk);
    });
    child.stderr.on("data", take);
    child.on("error", (error) => reject(new Failure(`${command}: ${error.message}`, next)));
    child.on("close", (code, signal) => {
      if (code === 0) {
        resolve(stdout);
      } else {
        const shown = lines.map((line) => `    ${line}`).join("\n");
        reject(new Failure(`${[command, ...args].join(" ")}\n  ended with ${signal ?? code}:\n${shown}`, next));
      }
    });
  });
}

/**
 * Runs a program that talks to the terminal itself; gives its exit code.
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, env?: NodeJS.ProcessEnv}} [options]
 * @returns {Promise<number>}
 */
export function passThrough(command, args, { cwd, env } = {}) {
  if (going.size > 0 && TTY) {
    process.stderr.write("\r\x1b[2K");
  }
  talking += 1;
  return new Promise((/** @type {(code: number) => void} */ resolve, reject) => {
    const child = spawn(command, args, { cwd, env: env ?? process.env, stdio: "inherit" });
    child.on("error", (error) => reject(new Failure(`${command}: ${error.message}`)));
    child.on("close", (code, signal) => resolve(signal === null ? (code ?? 1) : 128 + 15));
  }).finally(() => {
    talking -= 1;
  });
}

/** @param {string} text */
export const green = (text) => (TTY ? `\x1b[32m${text}\x1b[0m` : text);
/** @param {string} text */
export const red = (text) => (TTY ? `\x1b[31m${text}\x1b[0m` : text);
/** @param {string} text */
export const bold = (text) => (process.stdout.isTTY ? `\x1b[1m${text}\x1b[0m` : text);
