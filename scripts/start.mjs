/**
 * `npm start`: from a fresh clone to findings in the terminal and an editor that shows them.
 * `npm start -- --once` prints the findings and ends.
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { startEditor } from "./lib/codeServer.mjs";
import { CACHE, hashOf, hashOfFiles, ROOT, VENV, VENV_PYTHON, which } from "./lib/paths.mjs";
import { bold, execute, passThrough, runMain, step } from "./lib/terminal.mjs";
import { ensureCodeServer, ensureCompiler, ensureNodeModules, ensureVenv } from "./setup.mjs";

const EXAMPLES = path.join(ROOT, "examples");
/** Editor data of this checkout, outside of it. */
const HOME = path.join(CACHE, "start", hashOf(ROOT));
/** One store for the terminal and the editor, so that the runs of the one are seen in the other. */
const STORE = path.join(HOME, "runs.db");
/** The extension then shows a graph and the pipeline of the example at once. */
const DEMO = { IRSCOPE_DEMO: "1" };
const SETTINGS = {
  "irscope.python": VENV_PYTHON,
  "irscope.storePath": STORE,
  "editor.minimap.enabled": false, // With a graph beside it, it covers the ends of the lines.
};
const IRSCOPE = path.join(VENV, "bin", "irscope");

await runMain(async () => {
  const unknown = process.argv.slice(2).filter((argument) => argument !== "--once");
  if (unknown.length > 0) {
    console.error(`Unknown argument: ${unknown.join(" ")}\nUsage: npm start [-- --once]`);
    return 2;
  }
  ensureCompiler();
  await ensureVenv("start");
  const exit = await runExamples();
  if (process.argv.includes("--once") || exit !== 0) {
    return exit;
  }
  await ensureNodeModules();
  return (await openDesktopEditor()) ?? openBrowserEditor();
});

/** Runs irscope on each example and prints what it found; an example that is as it was at its last run is not run again. */
async function runExamples() {
  fs.mkdirSync(HOME, { recursive: true });
  for (const script of examples()) {
    const name = path.join("examples", script);
    const stamp = path.join(HOME, `${script}.run`);
    const inputs = hashOf(hashOfFiles(name, "compiler", "pyproject.toml"), VENV_PYTHON);
    const known = readStamp(stamp, inputs);
    if (known !== undefined) {
      console.log(`\n${bold(`irscope show ${known}`)}  (${name} is unchanged since this run)\n`);
      if ((await passThrough(IRSCOPE, ["show", known, "--store", STORE], { cwd: ROOT })) === 0) {
        continue;
      }
    }
    console.log(`\n${bold(`irscope run ${name}`)}\n`);
    const exit = await passThrough(IRSCOPE, ["run", "--store", STORE, name], { cwd: ROOT });
    if (exit !== 0) {
      console.error(`irscope ended with ${exit}.`);
      return exit;
    }
    const [newest] = JSON.parse(await execute(IRSCOPE, ["list", "--json", "--store", STORE], { cwd: ROOT }));
    fs.writeFileSync(stamp, JSON.stringify({ inputs, run: newest?.run }));
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
  fs.writeFileSync(workspace, JSON.stringify({ folders: [{ path: EXAMPLES }], settings: SETTINGS }, null, 2));
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
  const editor = await step("Starting VS Code for the browser", () =>
    startEditor({ codeServer, vsix, home: HOME, settings: SETTINGS, env: DEMO }),
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

function examples() {
  return fs
    .readdirSync(EXAMPLES)
    .filter((name) => name.endsWith(".py"))
    .sort();
}

function firstExample() {
  return path.join(EXAMPLES, examples().find((name) => name.startsWith("gpt")) ?? examples()[0] ?? "");
}
