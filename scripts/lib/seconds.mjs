/** What runs from a fresh clone took on this machine; `npm run check:house` shows it. */

import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { CACHE } from "./paths.mjs";

/** @param {"suite" | "first findings"} name @param {number} seconds */
export function noteSeconds(name, seconds) {
  const file = path.join(CACHE, "seconds.json");
  const others = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
  const noted = { seconds: Math.round(seconds), date: new Date().toISOString().slice(0, 10), cores: os.cpus().length };
  fs.mkdirSync(CACHE, { recursive: true });
  fs.writeFileSync(file, JSON.stringify({ ...others, [name]: noted }));
}
