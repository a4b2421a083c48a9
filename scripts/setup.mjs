/** What a fresh machine needs, step by step; a step that is done is skipped. Only Node's own modules are used here. */

import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { CACHE, hashOf, hashOfFiles, once, ROOT, VENV, VENV_PYTHON, which } from "./lib/paths.mjs";
import { inNewFolder } from "./lib/stopping.mjs";
import { execute, Failure, step } from "./lib/terminal.mjs";
import { installPackages } from "./lib/uv.mjs";

export const TORCH = "torch==2.13.0";
/** The one that is made for it. */
const TRITON = "triton==3.7.1";
/** The newest one that each Python can have. */
const TRANSFORMERS = ["transformers==5.23.0; python_version>='3.11'", "transformers==5.20.2; python_version<'3.11'"];
/** What most tests import, in Python. */
const IMPORTED = `import torch._inductor.compile_fx, torch.export, torch.onnx
from transformers import BertModel, GPT2LMHeadModel, LlamaForCausalLM, Qwen2ForCausalLM, ViTModel`;
const OLDEST_PYTHON = [3, 10];
const OLDEST_NODE = 20;
export const CODE_SERVER = "4.139.1";
const CODE_SERVER_NODE = "24";

/** `.venv` with pip alone: that is all that building the extension needs. */
export async function ensureEmptyVenv() {
  if (!fs.existsSync(VENV_PYTHON)) {
    const python = findPython();
    await step("Making .venv", () =>
      execute(python, ["-m", "venv", VENV], { next: "On Debian and Ubuntu: apt-get install python3-venv" }).then(
        () => {},
      ),
    );
  }
}

/**
 * Installs Python packages, unless that was done in the same way for the same inputs before.
 * @param {string} title @param {string} stamp @param {string} inputs @param {string[]} args as `pip install` has them
 */
async function install(title, stamp, inputs, args) {
  const next = "Check the network and pip's settings, then run the same command again; it goes on where it stopped.";
  await once(stampOf(stamp), hashOf(inputs, ...args), () =>
    step(title, (report) => installPackages(args, { report, next })),
  );
}

/** @param {string} name */
const stampOf = (name) => path.join(VENV, `.irscope-${name}`);

/**
 * `.venv` with torch and irscope itself. `start` is what running irscope needs; `test` adds the tools and the models.
 * @param {"start" | "test"} profile
 */
export async function ensureVenv(profile) {
  await ensureEmptyVenv();
  // torch by itself, first: a call that asks for more resolves to another, far larger build of it.
  await install(`Installing ${TORCH} (some hundred megabytes)`, "torch", "", [TORCH]);
  const project = fs.readFileSync(path.join(ROOT, "pyproject.toml"), "utf8");
  const start = ["-e", ".", "numpy"];
  if (profile === "start") {
    await install("Installing irscope", "start", project, start);
    return;
  }
  // In one call: each would prepare irscope again, and look through all that is installed.
  const test = ["-e", ".[dev]", "numpy", ...TRANSFORMERS];
  await install("Installing irscope and the test tools", "test", project, test);
  await once(stampOf("start"), hashOf(project, ...start), async () => {}); // All of it is there.
  // Else the first processes of the tests would compile the same modules beside each other, and those that keep none
  // would do so each time.
  await once(stampOf("imported"), hashOf(project, IMPORTED), () =>
    step("Compiling the modules of torch", () =>
      execute(VENV_PYTHON, ["-c", IMPORTED], {
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: "" },
      }).then(() => {}),
    ),
  );
  if (process.platform === "linux") {
    // Beside the packages: users of a CPU have none, and torch behaves otherwise where it can import it.
    const beside = ["--target", path.join(VENV, "triton", "site-packages"), "--no-deps", "--upgrade", TRITON];
    await install(`Installing ${TRITON} for some tests`, "triton", "", beside);
  }
}

/** The npm packages of package-lock.json. */
export async function ensureNodeModules() {
  if (Number(process.versions.node.split(".")[0]) < OLDEST_NODE) {
    throw new Failure(`Node ${process.versions.node} is too old.`, `Install Node ${OLDEST_NODE} or newer.`);
  }
  const lock = hashOfFiles("package-lock.json");
  await once(path.join(ROOT, "node_modules", ".irscope-lock"), lock, () =>
    step("Installing npm packages", async (report) => {
      await execute("npm", ["ci", "--no-audit", "--no-fund"], {
        cwd: ROOT,
        env: plainNpmEnvironment(),
        report,
        next: "Check the network and npm's registry setting, then run the same command again.",
      });
    }),
  );
}

/** Inductor's CPU code needs a C++ compiler. */
export function ensureCompiler() {
  if (["g++", "clang++", "c++"].every((name) => which(process.env["CXX"] ?? name) === undefined)) {
    throw new Failure(
      "No C++ compiler was found, and torch.compile needs one.",
      "On Debian and Ubuntu: apt-get install g++",
    );
  }
}

const CODE_SERVER_HOME = path.join(CACHE, `code-server-${CODE_SERVER}`);

/** Whether `ensureCodeServer` has nothing to do. */
export function isCodeServerThere() {
  return Object.values(codeServerIn(CODE_SERVER_HOME)).every((file) => fs.existsSync(file));
}

/** A VS Code that runs in a browser, built once into the cache folder. @returns {Promise<CodeServer>} */
export async function ensureCodeServer() {
  const home = CODE_SERVER_HOME;
  const found = codeServerIn(home);
  if (isCodeServerThere()) {
    return found;
  }
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch)) {
    throw new Failure(
      `The browser-based editor is built for Linux only (this is ${process.platform} ${process.arch}).`,
      "Install VS Code and its `code` command (Command Palette: Shell Command: Install 'code' command in PATH).",
    );
  }
  await ensureAptPackages([
    ["libkrb5-dev", () => fs.existsSync("/usr/include/gssapi/gssapi.h")],
    ["make", () => which("make") !== undefined],
    ["g++", () => which("g++") !== undefined],
    ["python3", () => which("python3") !== undefined],
  ]);
  await step(`Building code-server ${CODE_SERVER} in ${CACHE} (a few minutes, once)`, async (report) => {
    const partial = `${home}.partial-${process.pid}`;
    await inNewFolder(partial, async () => {
      fs.writeFileSync(path.join(partial, "package.json"), '{"private": true}\n');
      const next = "Check the network and the last lines above, then run the same command again.";
      const install = (/** @type {string} */ name, /** @type {NodeJS.ProcessEnv} */ env) =>
        execute("npm", ["install", "--no-audit", "--no-fund", "--prefix", partial, name], {
          cwd: partial,
          env,
          report,
          next,
          group: true,
        });
      const env = plainNpmEnvironment();
      await install(`${nodePackage()}@${CODE_SERVER_NODE}`, env);
      const node = path.join(partial, "node_modules", nodePackage());
      const withNode = {
        ...env,
        // What npm compiles for it, SQLite above all, does next to nothing here: optimizing it takes a minute, and saves none.
        CFLAGS: "-O0",
        CXXFLAGS: "-O0",
        PATH: `${path.join(node, "bin")}${path.delimiter}${env["PATH"]}`,
        npm_config_nodedir: node,
      };
      await install(`code-server@${CODE_SERVER}`, withNode);
      fs.rmSync(home, { recursive: true, force: true });
      fs.renameSync(partial, home);
    });
  });
  return found;
}

/** @typedef {{node: string, entry: string}} CodeServer */

/** @param {string} home @returns {CodeServer} */
function codeServerIn(home) {
  const modules = path.join(home, "node_modules");
  return {
    node: path.join(modules, nodePackage(), "bin", "node"),
    entry: path.join(modules, "code-server", "out", "node", "entry.js"),
  };
}

function nodePackage() {
  return `node-linux-${process.arch}`;
}

/**
 * A browser for the tests: the headless shell, since parts of a browser's window cost as much as a page, else any Chromium.
 * @returns {Promise<string>} its path
 */
export async function ensureChromium() {
  const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
  const found = () => process.env["CHROMIUM"] ?? names.map(which).find((each) => each !== undefined);
  const install = (/** @type {string} */ name) => ensureAptPackages([[name, () => found() !== undefined]]);
  await install("chromium-headless-shell").catch(() => install("chromium")); // Not every system has the first.
  const chromium = found();
  if (chromium === undefined) {
    throw new Failure("No Chromium was found.", "Install Chromium or Chrome, or name it: CHROMIUM=/path npm test");
  }
  return chromium;
}

/** The editors whose set-ups are in the docs. Where they cannot be installed, their tests are skipped. */
export async function ensureEditors() {
  /** @param {string} name */
  const library = (name) => fs.existsSync("/usr/share/emacs/site-lisp/elpa-src") && emacsLibraries().includes(name);
  const emacsLibraries = () =>
    fs.readdirSync("/usr/share/emacs/site-lisp/elpa-src").map((name) => name.replace(/-[\d.]+$/, ""));
  await ensureIfPossible("Neovim and Emacs", [
    ["neovim", () => which("nvim") !== undefined],
    ["emacs-nox", () => which("emacs") !== undefined],
    ["elpa-eglot", () => library("eglot")],
    ["elpa-lsp-mode", () => library("lsp-mode")],
  ]);
}

/** Graphviz's programs, which render the pictures of `irscope graph`. Without them, tests of these are skipped. */
export async function ensureGraphviz() {
  await ensureIfPossible("Graphviz", [["graphviz", () => which("dot") !== undefined]]);
}

/** @param {string} what @param {[name: string, isThere: () => boolean][]} packages */
async function ensureIfPossible(what, packages) {
  try {
    await ensureAptPackages(packages);
  } catch (error) {
    console.log(`Without ${what}: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Installs Debian packages where that is possible, else says which ones to install.
 * @param {[name: string, isThere: () => boolean][]} packages
 */
async function ensureAptPackages(packages) {
  const missing = packages.filter(([, isThere]) => !isThere()).map(([name]) => name);
  if (missing.length === 0) {
    return;
  }
  const install = ["apt-get", "install", "-y", "--no-install-recommends", ...missing];
  const next = `Run: sudo ${install.join(" ")}`;
  const isRoot = process.getuid?.() === 0;
  const prefix = isRoot ? [] : ["sudo", "-n"];
  if (
    which("apt-get") === undefined ||
    (!isRoot && !(which("sudo") !== undefined && succeeds("sudo", ["-n", "true"])))
  ) {
    throw new Failure(`Missing system packages: ${missing.join(", ")}.`, next);
  }
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (/** @type {string[]} */ command, /** @type {(line: string) => void} */ report) => {
    const [program = "", ...args] = [...prefix, ...command];
    return execute(program, args, { env, report, next });
  };
  await step(`Installing ${missing.join(", ")} with apt`, async (report) => {
    await apt(["apt-get", "update"], report).catch(() => undefined); // The lists at hand may do.
    await apt(install, report);
  });
}

/** A Python that is new enough and can make virtual environments. */
function findPython() {
  const asked = process.env["PYTHON"];
  const names =
    asked !== undefined ? [asked] : ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python"];
  let tooOld = "";
  for (const name of names) {
    const python = path.isAbsolute(name) ? name : which(name);
    if (python === undefined) {
      continue;
    }
    const [major = 0, minor = 0] = versionOf(python);
    if (major < (OLDEST_PYTHON[0] ?? 0) || (major === OLDEST_PYTHON[0] && minor < (OLDEST_PYTHON[1] ?? 0))) {
      tooOld ||= `${python} is ${major}.${minor}`;
      continue;
    }
    if (!succeeds(python, ["-c", "import venv, ensurepip"])) {
      throw new Failure(
        `${python} cannot make virtual environments: its venv module is missing.`,
        `On Debian and Ubuntu: apt-get install python${major}.${minor}-venv`,
      );
    }
    return python;
  }
  const wanted = OLDEST_PYTHON.join(".");
  throw new Failure(
    tooOld === "" ? "No Python was found." : `Python ${wanted} or newer is needed; ${tooOld}.`,
    `Install Python ${wanted} or newer, or name one: PYTHON=/path npm start`,
  );
}

/** @param {string} python */
function versionOf(python) {
  try {
    const text = execFileSync(python, ["-c", "import sys; print(sys.version_info[0], sys.version_info[1])"], {
      encoding: "utf8",
    });
    return text.trim().split(" ").map(Number);
  } catch {
    return [];
  }
}

/** @param {string} command @param {string[]} args */
function succeeds(command, args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** What `npm run` sets for its scripts must not steer another npm in another folder. */
function plainNpmEnvironment() {
  const dropped =
    /^npm_(package|lifecycle|command|execpath|node_execpath|config_(local_prefix|global_prefix|prefix|node_gyp|user_agent)$)/;
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !dropped.test(name) && !["INIT_CWD", "NODE"].includes(name)),
  );
}
