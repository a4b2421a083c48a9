/** Packs the .vsix: the extension, the server, the capture code and their libraries. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { BUNDLED, hashOfFiles, once, OUT, ROOT } from "./lib/paths.mjs";
import { execute, runMain, step } from "./lib/terminal.mjs";

const MANIFEST = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));
export const VSIX = path.join(OUT, `irscope-${MANIFEST.version}.vsix`);

/** @returns {Promise<string>} the packed file */
export async function ensureVsix() {
  await ensureBuilt();
  const inputs = hashOfFiles(
    "extension/src",
    "extension/media",
    "extension/launch_server.py",
    "extension/requirements.txt",
    "compiler",
    "server",
    "examples",
    "package.json",
    "package-lock.json",
    ".vscodeignore",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "scripts/build.mjs",
    "scripts/package.mjs",
  );
  await once(`${VSIX}.stamp`, inputs, () =>
    step("Packing the extension", async (report) => {
      copyPackages();
      fs.mkdirSync(OUT, { recursive: true });
      const vsce = path.join(ROOT, "node_modules", "@vscode", "vsce", "vsce");
      // Everything is bundled, so no npm package goes in.
      const args = ["package", "--no-dependencies", "--out", VSIX];
      await execute(process.execPath, [vsce, ...args], { cwd: ROOT, report });
    }),
  );
  return VSIX;
}

/** Copies our own Python packages, without caches, to where launch_server.py looks in a packed extension. */
function copyPackages() {
  for (const [room, name] of /** @type {const} */ ([
    ["compiler", "irscope"],
    ["server", "irscope_server"],
  ])) {
    const target = path.join(BUNDLED, room, name);
    fs.rmSync(target, { recursive: true, force: true });
    fs.cpSync(path.join(ROOT, room, name), target, {
      recursive: true,
      filter: (source) => !source.endsWith("__pycache__") && !source.endsWith(".pyc"),
    });
  }
  fs.rmSync(path.join(BUNDLED, "examples"), { recursive: true, force: true });
  fs.cpSync(path.join(ROOT, "examples", "gpt_training.py"), path.join(BUNDLED, "examples", "gpt_training.py"));
  // vsce packs what .vscodeignore names with `!`, whatever else it says: caches are removed here.
  for (const name of /** @type {string[]} */ (fs.readdirSync(BUNDLED, { recursive: true }))) {
    if (path.basename(name) === "__pycache__") {
      fs.rmSync(path.join(BUNDLED, name), { recursive: true, force: true });
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    console.log(path.relative(process.cwd(), await ensureVsix()));
  });
}
