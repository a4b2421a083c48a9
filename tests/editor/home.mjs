/** Folders that tests write into. */

import * as fs from "node:fs";
import * as path from "node:path";
import { OUT, SCREENSHOTS } from "../../scripts/lib/paths.mjs";

/**
 * A new folder for what a test file writes, and one for its pictures.
 * @param {string} name
 * @param {string} [base] where the folder is made: another one where a picture shows its path
 */
export function makeHome(name, base = OUT) {
  fs.mkdirSync(SCREENSHOTS, { recursive: true });
  fs.mkdirSync(base, { recursive: true });
  return fs.mkdtempSync(path.join(base, `${name}-`));
}

/** The picture of a test that failed. @param {string} title the test's */
export function pictureOfFailure(title) {
  return path.join(SCREENSHOTS, `failed-${title.replace(/\W+/g, "-")}.png`);
}
