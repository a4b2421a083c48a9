/** Bundles the extension into extension/dist and the server's libraries into extension/bundled. `--watch` goes on. */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { contributedGrammars, grammarWorker } from "./lib/grammarModules.mjs";
import { writeTexts } from "./lib/l10n.mjs";
import { BUNDLED, hashOfFiles, once, ROOT, VENV_PYTHON } from "./lib/paths.mjs";
import { noticesText } from "./lib/notices.mjs";
import { execute, runMain, step } from "./lib/terminal.mjs";
import { ensureEmptyVenv, ensureNodeModules } from "./setup.mjs";

const SOURCES = path.join(ROOT, "extension", "src");
const DIST = path.join(ROOT, "extension", "dist");
const LIBS = path.join(BUNDLED, "libs");
const ELK_WORKER = path.join(ROOT, "node_modules", "elkjs", "lib", "elk-worker.min.js");
/** The licences of what is in the bundles and the libraries; the .vsix and the wheel carry it. */
export const NOTICES = path.join(DIST, "THIRD_PARTY_NOTICES.txt");

/** Everything that the extension needs at run time from a checkout; nothing is done twice. */
export async function ensureBuilt() {
  await ensureLibraries();
  const inputs = hashOfFiles(
    "extension/src",
    "extension/requirements.txt",
    "package-lock.json",
    "scripts/build.mjs",
    "scripts/lib/notices.mjs",
    "scripts/lib/grammarModules.mjs",
    "extension/media",
    "package.json",
  );
  await once(path.join(DIST, ".stamp"), inputs, () => step("Building the extension", () => bundle()));
  const texts = hashOfFiles(
    "extension/src",
    "package.json",
    "package-lock.json",
    "scripts/lib/l10n.mjs",
    "scripts/lib/rooms.mjs",
  );
  await once(path.join(DIST, ".texts-stamp"), texts, () => step("Collecting texts", writeTexts));
}

/** The server's pure-Python libraries, for any interpreter from 3.10 on. */
export async function ensureLibraries() {
  const requirements = path.join(ROOT, "extension", "requirements.txt");
  await once(path.join(BUNDLED, ".libs-stamp"), hashOfFiles("extension/requirements.txt"), () =>
    step("Collecting the server's libraries", async (report) => {
      await ensureEmptyVenv();
      fs.rmSync(LIBS, { recursive: true, force: true });
      const anyPython = ["--python-version", "3.10", "--implementation", "py", "--abi", "none", "--platform", "any"];
      await execute(
        VENV_PYTHON,
        [
          "-m",
          "pip",
          "install",
          "--disable-pip-version-check",
          "--target",
          LIBS,
          "--no-deps",
          "--no-compile",
          ...anyPython,
          "--only-binary=:all:",
          "-r",
          requirements,
        ],
        { report },
      );
      fs.rmSync(path.join(LIBS, "bin"), { recursive: true, force: true });
    }),
  );
}

/**
 * What the page of a panel starts with: its `main.ts` where it has one, and else its view alone.
 *
 * @param {string} folder
 * @returns {import("esbuild").BuildOptions}
 */
function entryOf(folder) {
  const main = path.join(folder, "main.ts");
  if (fs.existsSync(main)) {
    return { entryPoints: [main] };
  }
  const contents = [
    'import "../panel.css";',
    'import { alone } from "../view";',
    'import { create } from "./view";',
    "alone(create);",
  ].join("\n");
  const tsconfig = path.join(SOURCES, "panels", "tsconfig.json"); // a file would have found it by itself
  return { stdin: { contents, resolveDir: folder, sourcefile: main, loader: "ts" }, tsconfig };
}

/** @param {{watch?: boolean}} [options] */
export async function bundle({ watch = false } = {}) {
  const esbuild = await import("esbuild");
  fs.mkdirSync(DIST, { recursive: true });
  /** @type {import("esbuild").BuildOptions} */
  const common = {
    bundle: true,
    minify: !watch,
    sourcemap: watch ? "inline" : false,
    logLevel: "warning",
    legalComments: "none",
  };
  /** @type {import("esbuild").BuildOptions} */
  const browser = { ...common, platform: "browser", format: "iife", target: "es2022" };
  /** Makes ELK's worker a string, so that the panel can start it from a blob. */
  const workerSource = {
    name: "graph-worker-source",
    /** @param {import("esbuild").PluginBuild} build */
    setup(build) {
      build.onResolve({ filter: /^graph-worker-source$/ }, ({ path: name }) => ({
        path: name,
        namespace: "worker-source",
      }));
      build.onLoad({ filter: /.*/, namespace: "worker-source" }, () => ({
        contents: fs.readFileSync(ELK_WORKER, "utf8"),
        loader: "text",
      }));
    },
  };
  const folder = path.join(SOURCES, "panels");
  const panels = fs
    .readdirSync(folder)
    .filter((name) => ["main.ts", "view.ts"].some((file) => fs.existsSync(path.join(folder, name, file))));
  /** The views of all panels by name, for the dock. */
  const panelViews = {
    name: "panel-views",
    /** @param {import("esbuild").PluginBuild} build */
    setup(build) {
      const views = panels.filter((name) => fs.existsSync(path.join(folder, name, "view.ts")) && name !== "values");
      build.onResolve({ filter: /^panel-views$/ }, ({ path: name }) => ({ path: name, namespace: "panel-views" }));
      build.onLoad({ filter: /.*/, namespace: "panel-views" }, () => ({
        contents: [
          ...views.map((name) => `import { create as ${name} } from "./${name}/view";`),
          `export const creators = { ${views.join(", ")} };`,
        ].join("\n"),
        resolveDir: folder,
      }));
    },
  };
  /** The files in the bundles. @type {Set<string>} */
  const inputs = new Set([path.relative(ROOT, ELK_WORKER)]);
  /** @type {import("esbuild").BuildOptions[]} */
  const builds = [
    {
      ...common,
      platform: "node",
      format: "cjs",
      target: "node20",
      external: ["vscode"],
      entryPoints: [path.join(SOURCES, "activation", "extension.ts")],
      outfile: path.join(DIST, "extension.js"),
    },
    {
      ...browser,
      plugins: [workerSource],
      entryPoints: [path.join(SOURCES, "graph", "page", "main.ts")],
      outfile: path.join(DIST, "graph.js"),
    },
    {
      ...browser,
      entryPoints: [path.join(SOURCES, "graph", "page", "graph.css")],
      outfile: path.join(DIST, "graph.css"),
    },
    {
      ...browser,
      plugins: [contributedGrammars, grammarWorker(common, inputs)],
      entryPoints: [path.join(SOURCES, "view", "main.ts")],
      outfile: path.join(DIST, "view.js"),
    },
    ...["view", "theme"].map((name) => ({
      ...browser,
      entryPoints: [path.join(SOURCES, "view", `${name}.css`)],
      outfile: path.join(DIST, `${name}.css`),
    })),
  ];
  for (const name of panels) {
    builds.push({
      ...browser,
      plugins: [panelViews],
      ...entryOf(path.join(folder, name)),
      outfile: path.join(DIST, `${name}.js`),
    });
  }
  for (const options of builds) {
    if (watch) {
      await (await esbuild.context({ ...options, logLevel: "info" })).watch();
    } else {
      const { metafile } = await esbuild.build({ ...options, absWorkingDir: ROOT, metafile: true });
      Object.keys(metafile.inputs).forEach((each) => inputs.add(each));
    }
  }
  if (!watch) {
    fs.writeFileSync(NOTICES, noticesText([...inputs], ROOT, LIBS));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    await ensureNodeModules();
    if (process.argv.includes("--watch")) {
      await ensureLibraries();
      await bundle({ watch: true });
    } else {
      await ensureBuilt();
    }
  });
}
