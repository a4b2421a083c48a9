/**
 * The licences of what is packed with irscope and was written by others: npm packages in the bundles, Python packages beside
 * the server. The text goes into every artifact.
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { Failure } from "./terminal.mjs";

const LICENCE_FILE = /^(licen[cs]e|copying|notice)/i;
/** Licences that want to be told where the source is. */
const WANTS_SOURCE = /EPL|MPL|LGPL|GPL/;

/** @typedef {{name: string, version: string, licence: string, source: string, texts: string[]}} Notice */

/**
 * @param {string[]} inputs the files in the bundles, relative to the root @param {string} root @param {string} libs the
 * folder of the Python packages @returns {string}
 */
export function noticesText(inputs, root, libs) {
  const notices = [...npmNotices(inputs, root), ...pythonNotices(libs)];
  const parts = notices.map(({ name, version, licence, source, texts }) =>
    [
      `${name} ${version} (${licence})`,
      ...(source === "" ? [] : [source]),
      ...(WANTS_SOURCE.test(licence) ? [`The source code of ${name} ${version} is available from that address.`] : []),
      "",
      ...texts,
    ].join("\n"),
  );
  const head = "irscope is packed with the following software, each under its own licence.";
  return [head, ...parts].join(`\n\n${"-".repeat(80)}\n\n`);
}

/** @param {string[]} inputs @param {string} root @returns {Notice[]} by name */
function npmNotices(inputs, root) {
  /** @type {Map<string, Notice>} */
  const found = new Map();
  for (const input of inputs) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input.replaceAll("\\", "/"));
    const folder = match?.[1] === undefined ? undefined : path.resolve(root, match[1]);
    if (folder !== undefined && !found.has(folder)) {
      found.set(folder, npmNotice(folder));
    }
  }
  return [...found.values()].sort((left, right) => left.name.localeCompare(right.name));
}

/** @param {string} folder @returns {Notice} */
function npmNotice(folder) {
  const { name, version, license, repository } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  const address = typeof repository === "string" ? repository : (repository?.url ?? "");
  const source = address
    .replace(/^git\+/, "")
    .replace(/^github:|^(?=[\w-]+\/[\w.-]+$)/, "https://github.com/")
    .replace(/\.git$/, "");
  return { name, version, licence: known(name, license), source, texts: textsOf(name, folder) };
}

/** @param {string} libs @returns {Notice[]} */
function pythonNotices(libs) {
  const folders = fs.readdirSync(libs).filter((name) => name.endsWith(".dist-info"));
  return folders.sort().map((folder) => {
    const home = path.join(libs, folder);
    const metadata = fs.readFileSync(path.join(home, "METADATA"), "utf8").split("\n\n")[0] ?? "";
    const field = (/** @type {string} */ name) => new RegExp(`^${name}: (.+)$`, "m").exec(metadata)?.[1]?.trim();
    const name = field("Name") ?? folder;
    const classifier = /^Classifier: License :: (.+)$/m.exec(metadata)?.[1]?.split(" :: ").at(-1);
    const licence = field("License-Expression") ?? field("License") ?? classifier;
    const source = /^Project-URL: (?:Source|Repository|Homepage|GitHub)[^,]*, (\S+)$/im.exec(metadata)?.[1];
    const nested = path.join(home, "licenses");
    return {
      name,
      version: field("Version") ?? "",
      licence: known(name, licence),
      source: source ?? field("Home-page") ?? "",
      texts: textsOf(name, fs.existsSync(nested) ? nested : home),
    };
  });
}

/** @param {string} name @param {unknown} licence @returns {string} */
function known(name, licence) {
  if (typeof licence !== "string" || licence === "") {
    throw new Failure(`${name} does not say what its licence is.`, "Look it up before it is packed with irscope.");
  }
  return licence;
}

/** @param {string} name @param {string} folder @returns {string[]} */
function textsOf(name, folder) {
  const files = fs.readdirSync(folder).filter((file) => LICENCE_FILE.test(file));
  const texts = files.sort().map((file) => fs.readFileSync(path.join(folder, file), "utf8").trim());
  if (texts.length === 0) {
    throw new Failure(`${name} has no licence text in ${folder}.`, "Look it up before it is packed with irscope.");
  }
  return texts;
}
