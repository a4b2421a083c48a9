/**
 * `npm start`: from a fresh clone to findings in the terminal and an editor that shows them.
 * `npm start -- --once` prints the findings and ends.
 */

import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import * as readline from "node:readline";
import { startEditor } from "./lib/codeServer.mjs";
import { CACHE, hashOf, hashOfFiles, ROOT, VENV, VENV_PYTHON, which } from "./lib/paths.mjs";
import { noteSeconds } from "./lib/seconds.mjs";
import { bold, execute, passThrough, runMain, step } from "./lib/terminal.mjs";
import {
  ensureCodeServer,
  ensureCompiler,
  ensureEmptyVenv,
  ensureNodeModules,
  ensureVenv,
  isCodeServerThere,
} from "./setup.mjs";

/** A test names a folder with a shorter one. */
const EXAMPLES = process.env["IRSCOPE_EXAMPLES"] ?? path.join(ROOT, "examples");
/** Editor data of this checkout, outside of it. */
const HOME = path.join(CACHE, "start", hashOf(ROOT));
/** The extension then shows a graph and the pipeline of the example at once. */
const DEMO = { IRSCOPE_DEMO: "1" };
const IRSCOPE = path.join(VENV, "bin", "irscope");
/** Between two looks for the first finding. */
const POLL_MS = 1_000;
const STARTED = Date.now() / 1000;
/** Whether this is `--once`, nothing was installed yet, and no example has been run since. */
let isFresh = process.argv.includes("--once") && !fs.existsSync(VENV_PYTHON);
/** Whether each example has a run. */
let examplesRan = false;

await runMain(async () => {
  const unknown = process.argv.slice(2).filter((argument) => argument !== "--once");
  if (unknown.length > 0) {
    console.error(`Unknown argument: ${unknown.join(" ")}\nUsage: npm start [-- --once]`);
    return 2;
  }
  ensureCompiler();
  // Many containers set it. Then each process would compile all modules of torch that it imports.
  delete process.env["PYTHONDONTWRITEBYTECODE"];
  if (process.argv.includes("--once")) {
    await ensureVenv("start");
    const size = (/** @type {string} */ name) => fs.statSync(path.join(EXAMPLES, name)).size;
    // The smallest first: there is something to read while the others are compiled.
    return runExamples(examples().sort((left, right) => size(left) - size(right)));
  }
  await ensureEmptyVenv();
  // Beside each other: the packages of the one come from PyPI, those of the other from npm.
  const extension = later(buildExtension());
  await ensureVenv("start");
  const editor = later(extension.then(prepareEditor));
  const exit = await runExamples(examples());
  if (exit !== 0) {
    return exit;
  }
  examplesRan = true;
  await extension;
  const view = await editor;
  try {
    return (await openDesktopEditor()) ?? (await openBrowserEditor());
  } finally {
    view?.kill();
  }
});

/** Work whose result is asked for later; an error is thrown there. @template T @param {Promise<T>} work */
function later(work) {
  work.catch(() => undefined);
  return work;
}

async function buildExtension() {
  await ensureNodeModules();
  const { ensureBuilt } = await import("./build.mjs");
  await ensureBuilt();
}

/**
 * Builds the editor for the browser where none is there; until then `irscope view` shows the run.
 * @returns {Promise<import("node:child_process").ChildProcess | undefined>}
 */
async function prepareEditor() {
  if (which("code") !== undefined || isCodeServerThere()) {
    return undefined;
  }
  const view = await startView(await firstFinding());
  await ensureCodeServer();
  return view;
}

/** The first finding of the first run, as soon as it is in the store. @returns {Promise<string[]>} arguments of `irscope view` */
async function firstFinding() {
  for (;;) {
    const run = await newestRun(firstExample());
    if (run !== undefined && (examplesRan || run.started >= STARTED)) {
      const [finding] = (await answer(["show", run.run]))?.findings ?? [];
      if (finding !== undefined) {
        return [run.run, "--open", `${finding.file}:${finding.range.start.line}`];
      }
      if (run.outcome !== null) {
        return [run.run];
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The newest run of a script. @param {string} script */
async function newestRun(script) {
  const runs = /** @type {{run: string, script: string, started: number, outcome: unknown}[]} */ (
    await answer(["list"])
  );
  return runs?.find((each) => each.script === script);
}

/** What a command says as JSON; undefined if there is nothing to tell yet. @param {string[]} args */
async function answer(args) {
  try {
    return JSON.parse(await execute(IRSCOPE, [...args, "--json"], { cwd: ROOT }));
  } catch {
    return undefined;
  }
}

/** Starts `irscope view`, and prints its address as soon as it has one. @param {string[]} shown */
async function startView(shown) {
  const view = spawn(IRSCOPE, ["view", ...shown], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.once("exit", () => view.kill());
  return new Promise((/** @type {(view: import("node:child_process").ChildProcess | undefined) => void} */ resolve) => {
    view.once("close", () => resolve(undefined));
    readline.createInterface({ input: view.stdout }).on("line", (line) => {
      if (line.includes("http://")) {
        const what = "The editor is being built. Until then this page shows the run (keep the address to yourself):";
        console.log(`\n${what}\n\n  ${bold(line.trim())}\n`);
        resolve(view);
      }
    });
  });
}

/**
 * Runs irscope on each example and prints what it found; an example that is as it was at its last run is not run again.
 * @param {string[]} scripts
 */
async function runExamples(scripts) {
  fs.mkdirSync(HOME, { recursive: true });
  for (const script of scripts) {
    const name = path.relative(ROOT, path.join(EXAMPLES, script));
    const stamp = path.join(HOME, `${script}.run`);
    const inputs = hashOf(hashOfFiles(name, "compiler", "pyproject.toml"), VENV_PYTHON);
    const known = readStamp(stamp, inputs);
    if (known !== undefined) {
      console.log(`\n${bold(`irscope show ${known}`)}  (${name} is unchanged since this run)\n`);
      if ((await passThrough(IRSCOPE, ["show", known], { cwd: ROOT })) === 0) {
        continue;
      }
    }
    console.log(`\n${bold(`irscope run ${name}`)}\n`);
    const exit = await passThrough(IRSCOPE, ["run", name], { cwd: ROOT });
    if (exit !== 0) {
      console.error(`irscope ended with ${exit}.`);
      return exit;
    }
    if (isFresh) {
      noteSeconds("first findings", process.uptime());
      isFresh = false;
    }
    fs.writeFileSync(stamp, JSON.stringify({ inputs, run: (await newestRun(path.join(ROOT, name)))?.run }));
  }
  console.log();
  return 0;
}

/** The run that was made of the same inputs. @param {string} stamp @param {string} inputs @returns {string | undefined} */
function readStamp(stamp, inputs) {
  try {
    const known = JSON.parse(fs.readFileSync(stamp, "utf8"));
    return known.inputs === inputs ? known.run : undefined;
  } catch {
    return undefined; // No run yet, or a broken stamp.
  }
}

/** @returns {Promise<number | undefined>} undefined if no desktop VS Code opens */
async function openDesktopEditor() {
  const code = which("code");
  if (code === undefined) {
    return undefined;
  }
  const { ensureBuilt } = await import("./build.mjs");
  await ensureBuilt();
  // A workspace file outside the checkout names the interpreter, so that nothing is written into the examples.
  const workspace = path.join(HOME, "irscope examples.code-workspace");
  fs.mkdirSync(path.dirname(workspace), { recursive: true });
  fs.writeFileSync(workspace, JSON.stringify({ folders: [{ path: EXAMPLES }], settings: await settings() }, null, 2));
  const args = ["--new-window", `--extensionDevelopmentPath=${ROOT}`, workspace, firstExample()];
  if ((await passThrough(code, args, { env: { ...process.env, ...DEMO } })) !== 0) {
    console.error("The desktop VS Code did not open; a browser will do.");
    return undefined;
  }
  console.log(`VS Code opens with the extension on ${path.relative(process.cwd(), EXAMPLES) || "."}.`);
  return 0;
}

async function openBrowserEditor() {
  const { ensureVsix } = await import("./package.mjs");
  const vsix = await ensureVsix();
  const codeServer = await ensureCodeServer();
  const given = await settings();
  const editor = await step("Starting VS Code for the browser", () =>
    startEditor({ codeServer, vsix, home: HOME, settings: given, env: DEMO }),
  );
  const stopped = new Promise((resolve) => {
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
      process.once(signal, () => resolve(0));
    }
  });
  const payload = JSON.stringify([["openFile", `vscode-remote://${new URL(editor.origin).host}${firstExample()}`]]);
  console.log(
    `\nOpen this address (it holds the token; keep it to yourself):\n\n  ${bold(editor.address(EXAMPLES, { payload }))}\n`,
  );
  console.log("Ctrl-C stops it.");
  const exit = await Promise.race([stopped, editor.ended]);
  console.log("\nStopping…");
  await editor.stop();
  return Number(exit);
}

/** The editor's settings. It uses the store of the command line, so that the runs of the one are seen in the other. */
async function settings() {
  const store = "from irscope.store.file import default_path; print(default_path())";
  return {
    "irscope.python": VENV_PYTHON,
    "irscope.storePath": (await execute(VENV_PYTHON, ["-c", store], { cwd: ROOT })).trim(),
    "editor.minimap.enabled": false, // With a graph beside it, it covers the ends of the lines.
  };
}

function examples() {
  return fs
    .readdirSync(EXAMPLES)
    .filter((name) => name.endsWith(".py"))
    .sort();
}

function firstExample() {
  return path.join(EXAMPLES, examples().find((name) => name.startsWith("gpt")) ?? examples()[0] ?? "");
}
