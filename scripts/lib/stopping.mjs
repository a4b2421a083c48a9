/**
 * What Ctrl-C ends: programs that build something, each with all the processes that it started, and what they had
 * written until then.
 *
 * A build ends at its own pace where it is asked: npm first finishes the package that it unpacks. So each has a process
 * group of its own, which the terminal's Ctrl-C does not reach, and which is killed as a whole.
 */

import * as fs from "node:fs";
import * as os from "node:os";

const SIGNALS = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);

/** @type {Set<() => void>} */
const going = new Set();

/** @param {NodeJS.Signals} signal */
function stop(signal) {
  [...going].reverse().forEach((end) => end()); // First the programs, then the folders that they write to.
  process.exit(128 + os.constants.signals[signal]);
}

/** @param {() => void} end @returns {() => void} to be called when there is nothing to end any more */
function atStop(end) {
  if (going.size === 0) {
    SIGNALS.forEach((signal) => process.on(signal, stop));
  }
  going.add(end);
  return () => {
    going.delete(end);
    if (going.size === 0) {
      SIGNALS.forEach((signal) => process.off(signal, stop));
    }
  };
}

/** Kills a program that was started with `detached` when this process is told to end. @param {import("node:child_process").ChildProcess} child */
export function endsWithUs(child) {
  const forget = atStop(() => killGroup(child.pid));
  child.once("close", forget);
  child.once("error", forget);
}

/**
 * Makes an empty folder for `work`, and removes it afterwards, also where this process is told to end.
 * @template T @param {string} folder @param {() => Promise<T>} work @returns {Promise<T>}
 */
export async function inNewFolder(folder, work) {
  // A process that is being killed may still write a last file.
  const remove = () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  const forget = atStop(remove);
  try {
    remove();
    fs.mkdirSync(folder, { recursive: true });
    return await work();
  } finally {
    forget();
    remove();
  }
}

/** @param {number | undefined} group */
function killGroup(group) {
  try {
    process.kill(-(group ?? Number.NaN), "SIGKILL");
  } catch {
    // It has ended already.
  }
}
