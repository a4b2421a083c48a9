/**
 * `npm run release`: checks that the version can be published, and makes its files in out/release: the .vsix, the wheel, the
 * sdist, the licences and the checksums. It publishes nothing. `--check` only checks; `--draft` makes the files all the same.
 */

import { execFileSync } from "node:child_process";
import * as crypto from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { NOTICES } from "./build.mjs";
import { OUT, ROOT, VENV_PYTHON } from "./lib/paths.mjs";
import { problemsOf } from "./lib/releasing.mjs";
import { execute, Failure, runMain, step } from "./lib/terminal.mjs";
import { ensureVsix } from "./package.mjs";
import { ensureNodeModules, ensureVenv } from "./setup.mjs";

const RELEASE = path.join(OUT, "release");

await runMain(async () => {
  const problems = problemsOf({
    manifest: read("package.json"),
    project: read("pyproject.toml"),
    module: read("compiler/irscope/__init__.py"),
    changelog: read("CHANGELOG.md"),
    changes: execFileSync("git", ["status", "--porcelain"], { cwd: ROOT, encoding: "utf8" }),
  });
  problems.forEach((problem) => console.log(`- ${problem}`));
  if (problems.length > 0 && !process.argv.includes("--draft")) {
    throw new Failure("This version cannot be published yet.", "Fix what is named above, or make a draft: --draft");
  }
  if (!process.argv.includes("--check")) {
    await makeFiles();
  }
  return 0;
});

async function makeFiles() {
  await ensureNodeModules();
  await ensureVenv("test"); // `build`, which makes the Python packages
  fs.rmSync(RELEASE, { recursive: true, force: true });
  fs.mkdirSync(RELEASE, { recursive: true });
  const vsix = await ensureVsix(); // first: the wheel carries the page that it builds
  fs.copyFileSync(vsix, path.join(RELEASE, path.basename(vsix)));
  fs.copyFileSync(NOTICES, path.join(RELEASE, path.basename(NOTICES)));
  await step("Making the wheel and the sdist", (report) =>
    execute(VENV_PYTHON, ["-m", "build", "--outdir", RELEASE, ROOT], { cwd: ROOT, report }).then(() => {}),
  );
  const sums = fs
    .readdirSync(RELEASE)
    .sort()
    .map((name) => `${sha256(path.join(RELEASE, name))}  ${name}`);
  fs.writeFileSync(path.join(RELEASE, "SHA256SUMS"), `${sums.join("\n")}\n`);
  console.log(`${path.relative(process.cwd(), RELEASE)}:\n${sums.map((sum) => `  ${sum}`).join("\n")}`);
}

/** @param {string} file */
function sha256(file) {
  return crypto.createHash("sha256").update(fs.readFileSync(file)).digest("hex");
}

/** @param {string} file */
function read(file) {
  return fs.readFileSync(path.join(ROOT, file), "utf8");
}
