/** Packs the .vsix: the extension, the server, the capture code and their libraries. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { externalized, L10N, MANIFEST_TEXTS } from "./lib/l10n.mjs";
import { BUNDLED, hashOfFiles, once, OUT, ROOT } from "./lib/paths.mjs";
import { withoutRelativeLinks } from "./lib/releasing.mjs";
import { execute, runMain, step } from "./lib/terminal.mjs";
import { ensureNodeModules } from "./setup.mjs";

const MANIFEST = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));
/** What is packed: the checkout's files with the manifest as VS Code wants it. */
const STAGE = path.join(OUT, "packed");
export const VSIX = path.join(OUT, `irscope-${MANIFEST.version}.vsix`);

/** @returns {Promise<string>} the packed file */
export async function ensureVsix() {
  await ensureBuilt();
  const inputs = hashOfFiles(
    "extension/src",
    "extension/media",
    "extension/launch_server.py",
    "extension/requirements.txt",
    "l10n",
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
    "scripts/lib/l10n.mjs",
    "scripts/lib/releasing.mjs",
    "scripts/lib/rooms.mjs",
  );
  await once(`${VSIX}.stamp`, inputs, () =>
    step("Packing the extension", async (report) => {
      copyPackages();
      await stage();
      const vsce = path.join(ROOT, "node_modules", "@vscode", "vsce", "vsce");
      // Everything is bundled, so no npm package goes in.
      const args = ["package", "--no-dependencies", "--allow-missing-repository", "--out", VSIX];
      await execute(process.execPath, [vsce, ...args], { cwd: STAGE, report });
    }),
  );
  return VSIX;
}

/** Copies what .vscodeignore names, with `%key%` for each text of the manifest and the texts in files beside it. */
async function stage() {
  const { listFiles, PackageManager } = await import("@vscode/vsce");
  const files = await listFiles({ cwd: ROOT, packageManager: PackageManager.None });
  fs.rmSync(STAGE, { recursive: true, force: true });
  for (const file of [...files, ".vscodeignore"]) {
    fs.cpSync(path.join(ROOT, file), path.join(STAGE, file));
  }
  fs.writeFileSync(path.join(STAGE, "package.json"), JSON.stringify(externalized(MANIFEST).manifest, null, 2));
  for (const name of ["README.md", "CHANGELOG.md"]) {
    fs.writeFileSync(path.join(STAGE, name), withoutRelativeLinks(fs.readFileSync(path.join(ROOT, name), "utf8")));
  }
  for (const name of fs.readdirSync(L10N).filter((each) => MANIFEST_TEXTS.test(each))) {
    fs.cpSync(path.join(L10N, name), path.join(STAGE, name));
  }
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
    await ensureNodeModules();
    console.log(path.relative(process.cwd(), await ensureVsix()));
  });
}
