/** Where things lie. */

import * as crypto from "node:crypto";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const VENV = path.join(ROOT, ".venv");
export const VENV_PYTHON = path.join(VENV, "bin", "python");
export const OUT = path.join(ROOT, "out");
export const BUNDLED = path.join(ROOT, "extension", "bundled");
export const SCREENSHOTS = path.join(ROOT, ".screenshots");

/** Large things that outlive a checkout. */
export const CACHE = path.join(process.env["XDG_CACHE_HOME"] || path.join(os.homedir(), ".cache"), "irscope");

/** @param {string} name @returns {string | undefined} the program's path */
export function which(name) {
  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
    const candidate = path.join(folder, name);
    try {
      fs.accessSync(candidate, fs.constants.X_OK);
      if (fs.statSync(candidate).isFile()) {
        return candidate;
      }
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/** @param {string[]} parts */
export function hashOf(...parts) {
  const hash = crypto.createHash("sha256");
  for (const part of parts) {
    hash.update(part).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

/** A hash of names and contents of all files under some paths of the checkout. @param {string[]} names */
export function hashOfFiles(...names) {
  const parts = [];
  for (const name of names) {
    for (const file of filesUnder(path.join(ROOT, name))) {
      parts.push(path.relative(ROOT, file), fs.readFileSync(file, "latin1"));
    }
  }
  return hashOf(...parts);
}

/** @param {string} file @returns {string[]} */
function filesUnder(file) {
  if (!fs.existsSync(file)) {
    return [];
  }
  if (!fs.statSync(file).isDirectory()) {
    return [file];
  }
  return fs
    .readdirSync(file)
    .filter((name) => name !== "__pycache__" && name !== "node_modules")
    .sort()
    .flatMap((name) => filesUnder(path.join(file, name)));
}

/**
 * Does the work unless it was done for the same inputs before; the stamp is written last, so that a step which was
 * interrupted is done again.
 * @param {string} stamp a file
 * @param {string} inputs a hash
 * @param {() => Promise<void>} work
 */
export async function once(stamp, inputs, work) {
  if (isDone(stamp, inputs)) {
    return;
  }
  fs.rmSync(stamp, { force: true });
  await work();
  fs.mkdirSync(path.dirname(stamp), { recursive: true });
  fs.writeFileSync(stamp, inputs);
}

/** @param {string} stamp @param {string} inputs */
export function isDone(stamp, inputs) {
  return fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === inputs;
}
