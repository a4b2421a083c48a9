/** Writes docs/settings.md from package.json; a test fails where they differ. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "./lib/paths.mjs";

export const PAGE = path.join(ROOT, "docs", "settings.md");

/**
 * @typedef {object} Setting
 * @property {string | string[]} type
 * @property {unknown} default
 * @property {string} [scope]
 * @property {number} [order]
 * @property {string} [markdownDescription]
 * @property {string[]} [enum]
 * @property {string[]} [markdownEnumDescriptions]
 */

/** @returns {[name: string, setting: Setting][]} in the order of the settings editor */
export function settings() {
  const manifest = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));
  const { configuration } = manifest.contributes;
  /** @type {[string, Setting][]} */
  const all = [configuration]
    .flat()
    .flatMap((/** @type {{properties: Record<string, Setting>}} */ each) => Object.entries(each.properties));
  return all.sort(([left, a], [right, b]) => (a.order ?? 0) - (b.order ?? 0) || (left < right ? -1 : 1));
}

/** @returns {string} the page */
export function settingsPage() {
  const parts = [
    "# Settings",
    "Made from package.json by `node scripts/settings.mjs`. Names are those of VS Code; other editors give them without `irscope.` (see [PROTOCOL.md](PROTOCOL.md)). A *resource* setting may differ from folder to folder.",
    ...settings().map(([name, setting]) => section(name, setting)),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** @param {string} name @param {Setting} setting */
function section(name, setting) {
  const type = [setting.type].flat().join(" or ");
  const lines = [
    `## \`${name}\``,
    `${type}, default \`${JSON.stringify(setting.default)}\`, ${setting.scope ?? "window"}`,
  ];
  lines.push((setting.markdownDescription ?? "").replace(/`#([\w.]+)#`/g, "`$1`"));
  if (setting.enum !== undefined) {
    const told = setting.enum.map(
      (value, index) => `- \`${value}\`: ${setting.markdownEnumDescriptions?.[index] ?? ""}`,
    );
    lines.push(told.join("\n"));
  }
  return lines.join("\n\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  fs.writeFileSync(PAGE, settingsPage());
}
