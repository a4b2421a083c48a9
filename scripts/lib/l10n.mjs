/**
 * The texts that can be translated: those of the manifest, and those that the extension passes to `vscode.l10n.t`.
 * package.json and the source keep the English texts; what VS Code and translators want is derived from them.
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { hashOf, ROOT } from "./paths.mjs";
import { HOST_ROOMS } from "./rooms.mjs";

/** Here translations lie, and at build time the English texts beside them. */
export const L10N = path.join(ROOT, "l10n");

/** Files with texts of the manifest. VS Code looks for them beside package.json. */
export const MANIFEST_TEXTS = /^package\.nls(\.[\w-]+)?\.json$/;

/** Members of the manifest that VS Code shows. */
const TEXT_KEYS = new Set([
  "title",
  "shortTitle",
  "category",
  "description",
  "markdownDescription",
  "enumDescriptions",
  "markdownEnumDescriptions",
  "deprecationMessage",
  "markdownDeprecationMessage",
  "label",
  "contextualTitle",
  "contents",
  "altText",
]);
/** Values that are used, not shown: what is in them stays as it is. */
const DATA_KEYS = new Set(["default", "defaults", "body", "initialConfigurations"]);

/** @typedef {Record<string, string>} Texts English texts by key */

/**
 * The manifest with `%key%` in place of each text, and the texts.
 *
 * A key is the place in the manifest. An element of a list is named by what identifies it and never by its number: a
 * translation must not move to another text when an element is added.
 * @param {Record<string, any>} manifest @returns {{manifest: Record<string, any>, texts: Texts}}
 */
export function externalized(manifest) {
  /** @type {Texts} */
  const texts = { displayName: manifest["displayName"], description: manifest["description"] };
  const keyed = (/** @type {string} */ key, /** @type {string} */ text) => {
    // The name is everywhere, as the category of commands for example: it is translated once or not at all.
    const chosen = text === texts["displayName"] ? "displayName" : key;
    if (texts[chosen] !== undefined && texts[chosen] !== text) {
      throw new Error(`Two texts in package.json have the key ${chosen}.`);
    }
    texts[chosen] = text;
    return `%${chosen}%`;
  };
  /** @param {any} value @param {string} place @param {boolean} isText @param {any} parent @returns {any} */
  const walk = (value, place, isText, parent) => {
    if (typeof value === "string") {
      return isText && value !== "" ? keyed(place, value) : value;
    }
    if (Array.isArray(value)) {
      return value.map((element, index) => walk(element, `${place}.${nameOf(element, parent, index)}`, isText, value));
    }
    if (value === null || typeof value !== "object") {
      return value;
    }
    const walked = Object.entries(value).map(([key, member]) => {
      const shown = TEXT_KEYS.has(key) || (key === "name" && place.startsWith("views."));
      return [key, DATA_KEYS.has(key) ? member : walk(member, place === "" ? key : `${place}.${key}`, shown, value)];
    });
    return Object.fromEntries(walked);
  };
  const { capabilities, contributes } = manifest;
  const replaced = {
    ...manifest,
    displayName: "%displayName%",
    description: "%description%",
    capabilities: walk({ capabilities }, "", false, undefined).capabilities,
    contributes: walk(contributes, "", false, undefined),
  };
  return { manifest: replaced, texts };
}

/** @param {any} element @param {any} parent @param {number} index @returns {string} */
function nameOf(element, parent, index) {
  const own = element?.command ?? element?.id ?? element?.type;
  // A description of a value is named by the value.
  return own ?? parent?.enum?.[index] ?? hashOf(JSON.stringify(element)).slice(0, 6);
}

/** The files whose texts can be translated. */
export function filesOfHost() {
  return HOST_ROOMS.flatMap((room) => {
    const folder = path.join(ROOT, "extension", "src", room);
    return fs.readdirSync(folder).map((name) => path.join(folder, name));
  });
}

/** The texts that the extension passes to `vscode.l10n.t`. @returns {Promise<Texts>} */
export async function textsOfSource() {
  const { getL10nJson } = await import("@vscode/l10n-dev");
  const files = filesOfHost();
  const sources = files.map((file) => ({ extension: path.extname(file), contents: fs.readFileSync(file, "utf8") }));
  const texts = await getL10nJson(sources);
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, typeof text === "string" ? text : text.message]),
  );
}

/** Writes the English texts beside the translations: `bundle.l10n.json` and `package.nls.json`. */
export async function writeTexts() {
  const manifest = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));
  fs.mkdirSync(L10N, { recursive: true });
  const write = (/** @type {string} */ name, /** @type {Texts} */ texts) =>
    fs.writeFileSync(path.join(L10N, name), `${JSON.stringify(texts, null, 2)}\n`);
  write("package.nls.json", externalized(manifest).texts);
  write("bundle.l10n.json", await textsOfSource());
}
