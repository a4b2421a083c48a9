/** What the packed extension holds, and that its server works with an interpreter that has nothing but torch. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { VSIX } from "../../../scripts/package.mjs";
import { makeHome } from "../home.mjs";
import { LspClient } from "../lspClient.mjs";
import { withTexts } from "../nls.mjs";
import { itNightly } from "../themes.mjs";

describe("the packed extension", () => {
  /** @type {string} */
  let home;
  /** @type {string} */
  let extension;

  before(() => {
    home = makeHome("vsix");
    // Python's own unzip: nothing to install.
    execFileSync(VENV_PYTHON, ["-m", "zipfile", "-e", VSIX, home]);
    extension = path.join(home, "extension");
  });

  /** Starts the packed server as the extension does. @param {string} python */
  function startServer(python) {
    const server = spawn(python, ["-I", "-S", path.join(extension, "extension", "launch_server.py")], {
      cwd: home,
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONPATH: "/nowhere" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    return new LspClient(server);
  }

  /** @param {LspClient} client @param {string} python @param {string} script @param {number} trySeconds */
  async function openScript(client, python, script, trySeconds = 20) {
    const uri = `file://${script}`;
    await client.request("initialize", {
      processId: process.pid,
      rootUri: `file://${home}`,
      capabilities: {},
      initializationOptions: {
        python,
        storePath: path.join(home, "runs.db"),
        run: { onSave: "off" },
        fixes: { trySeconds },
        trusted: true,
      },
    });
    client.notify("initialized", {});
    const text = fs.readFileSync(script, "utf8");
    client.notify("textDocument/didOpen", { textDocument: { uri, languageId: "python", version: 1, text } });
    return uri;
  }

  after(() => fs.rmSync(home, { recursive: true, force: true }));

  it("carries the server, the capture code and pure-Python libraries, and nothing else", () => {
    const files = filesUnder(extension).map((file) => path.relative(extension, file));
    for (const needed of [
      "package.json",
      "readme.md",
      "LICENSE.txt",
      "changelog.md",
      "extension/dist/extension.js",
      "extension/dist/graph.js",
      "extension/launch_server.py",
      "extension/media/icon.png",
      "extension/bundled/compiler/irscope/protocol/report.py",
      "extension/bundled/server/irscope_server/__main__.py",
      "extension/bundled/libs/pygls/__init__.py",
      "extension/bundled/libs/typing_extensions.py",
      "extension/bundled/libs/exceptiongroup/__init__.py",
    ]) {
      assert.ok(files.includes(needed), `${needed} is missing`);
    }
    const native = files.filter((file) => /\.(so|pyd|dylib|dll|node)$/.test(file));
    assert.deepEqual(native, []);
    const foreign = files.filter((file) =>
      /^(tests|examples|benchmarks|node_modules|scripts|docs|extension\/src)\//.test(file),
    );
    assert.deepEqual(foreign, []);
    assert.ok(!files.some((file) => file.includes("__pycache__")));
  });

  it("carries the manifest with its texts in files that can be translated", () => {
    const read = (/** @type {string} */ name) => JSON.parse(fs.readFileSync(path.join(extension, name), "utf8"));
    const [manifest, texts] = [read("package.json"), read("package.nls.json")];
    assert.match(manifest.contributes.commands[0].title, /^%.+%$/);
    assert.deepEqual(withTexts(manifest, texts), JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")));
    assert.equal(read(path.join(manifest.l10n, "bundle.l10n.json"))["Restart Server"], "Restart Server");
    // What the Marketplace shows.
    const about = fs.readFileSync(path.join(home, "extension.vsixmanifest"), "utf8");
    assert.ok(about.includes(`<DisplayName>${texts.displayName}</DisplayName>`));
    assert.ok(about.includes(texts.description));
  });

  it("carries the licences of what it is packed with, and says where the source of ELK is", () => {
    const text = fs.readFileSync(path.join(extension, "extension", "dist", "THIRD_PARTY_NOTICES.txt"), "utf8");
    for (const name of ["elkjs", "@codemirror/view", "@lezer/lr", "vscode-languageclient", "pygls", "cattrs"]) {
      assert.match(text, new RegExp(`^${name} [0-9.]+ \\(\\S`, "m"), name);
    }
    assert.match(
      text,
      /^elkjs .*\n(https:\S+elkjs\S*)\nThe source code of elkjs \S+ is available from that address\./m,
    );
    assert.match(text, /Eclipse Public License - v 2\.0/i);
    const libs = fs.readdirSync(path.join(extension, "extension", "bundled", "libs"));
    for (const library of libs.filter((name) => name.endsWith(".dist-info"))) {
      const [name = ""] = library.split("-");
      assert.match(text.toLowerCase(), new RegExp(`^${name.toLowerCase()} [0-9.]+ `, "m"), library);
    }
    assert.doesNotMatch(fs.readFileSync(path.join(extension, "LICENSE.txt"), "utf8"), /\[(yyyy|name)/);
  });

  it("pins library versions with which the ranges in pyproject.toml begin", () => {
    const versions = (/** @type {string} */ text, /** @type {string} */ sign) =>
      [...text.matchAll(new RegExp(`\\b(pygls|lsprotocol)${sign}([\\w.]+)`, "g"))].map(([, name, version]) => [
        name,
        version,
      ]);
    const project = fs.readFileSync(path.join(ROOT, "pyproject.toml"), "utf8");
    const requirements = fs.readFileSync(path.join(ROOT, "extension", "requirements.txt"), "utf8");
    const pinned = versions(requirements, "==").sort();
    assert.equal(pinned.length, 2);
    assert.deepEqual(pinned, versions(project, ">=").sort());
  });

  itNightly("runs a script with an environment that holds only torch, and leaves it as it was", async () => {
    const python = makeTorchOnlyEnvironment(path.join(home, "venv"));
    const found = execFileSync(python, ["-c", PROBE], { encoding: "utf8" }).trim();
    assert.equal(found, "torch", "the environment holds torch and none of our libraries");
    const before = listOf(path.join(home, "venv"));

    const script = path.join(home, "script.py");
    fs.writeFileSync(script, SCRIPT);
    const client = startServer(python);
    try {
      const uri = await openScript(client, python, script);
      const { outcome, message, run } = await client.request("irscope/run", { uri, lane: "fast" });
      assert.equal(outcome, "completed", message);
      const published = await client.until(
        "textDocument/publishDiagnostics",
        ({ diagnostics }) => diagnostics.length > 0,
      );
      assert.deepEqual(
        published.diagnostics.map((/** @type {{code: string}} */ each) => each.code),
        ["GB0170"],
      );
      const { compiles } = await client.request("irscope/report", { run });
      assert.ok(compiles.length >= 1);
      const { nodes, edges } = await client.request("irscope/graph", {
        run,
        stage: compiles[0].stages.find((/** @type {{isGraph: boolean}} */ stage) => stage.isGraph).stage,
      });
      assert.ok(nodes.name.length > 1 && edges.length > 1);
      const { stdout } = client.output();
      assert.match(stdout, /sees torch only/, "the script sees the user's environment and nothing of ours");
    } finally {
      await client.end();
    }
    assert.deepEqual(listOf(path.join(home, "venv")), before, "nothing was installed");
  });

  it("offers fixes, and says which are verified when they were tried", async () => {
    const python = makeTorchOnlyEnvironment(path.join(home, "fixes"));
    const script = path.join(home, "fixes.py");
    fs.writeFileSync(script, FIXABLE);
    const titles = async () => {
      const client = startServer(python);
      try {
        const uri = await openScript(client, python, script, 60);
        const { outcome, message } = await client.request("irscope/run", { uri, lane: "fast" });
        assert.equal(outcome, "completed", message);
        const at = { line: FIXABLE.split("\n").findIndex((line) => line.includes(".item()")), character: 8 };
        const ask = async () => {
          const params = { textDocument: { uri }, range: { start: at, end: at }, context: { diagnostics: [] } };
          /** @type {{title: string}[]} */
          const actions = await client.request("textDocument/codeAction", params);
          return actions.map((each) => each.title);
        };
        let found = await ask();
        for (let n = 0; n < 600 && !found.some((title) => /verified/.test(title)); n += 1) {
          await new Promise((wake) => setTimeout(wake, 200));
          found = await ask();
        }
        return found;
      } finally {
        await client.end();
      }
    };
    const tried = await titles();
    assert.ok(
      tried.some((title) => /^Verified: .*\(GB0124: 1 break fewer/.test(title)),
      tried.join("; "),
    );
  });

  it("says what is wrong where the interpreter is too old", () => {
    const launcher = fs.readFileSync(path.join(extension, "extension", "launch_server.py"), "utf8");
    const old = launcher.replace("OLDEST = (3, 10)", "OLDEST = (9, 9)").replace("3.10 or newer", "9.9 or newer");
    const file = path.join(home, "old.py");
    fs.writeFileSync(file, old);
    assert.throws(
      () => execFileSync(VENV_PYTHON, ["-I", "-S", file], { stdio: "pipe" }),
      (/** @type {{status: number, stderr: Buffer}} */ error) =>
        error.status === 3 && /needs Python 9\.9 or newer/.test(error.stderr.toString()),
    );
  });
});

const PROBE = `
import importlib.util
names = ("torch", "pygls", "lsprotocol", "irscope", "irscope_server", "pytest", "numpy")
print(" ".join(name for name in names if importlib.util.find_spec(name)))
`;

const SCRIPT = `
import importlib.util
import torch

ours = [n for n in ("pygls", "lsprotocol", "cattrs", "irscope_server") if importlib.util.find_spec(n)]
print("sees", *(ours or ["torch only"]))

@torch.compile
def f(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2

f(torch.ones(4))
`;

const FIXABLE = `
import torch

@torch.compile
def f(x):
    n = x.sum().item()
    if x.mean() > 0:
        x = x + 1
    return x * n

f(torch.ones(4))
`;

/** Links packages of the development environment that there are into another one. @param {string} python @param {string[]} names */
function linkPackages(python, names) {
  const ask = (/** @type {string} */ of) =>
    execFileSync(of, ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], { encoding: "utf8" }).trim();
  const [from, to] = [ask(VENV_PYTHON), ask(python)];
  for (const name of names.filter((each) => fs.existsSync(path.join(from, each)))) {
    if (!fs.existsSync(path.join(to, name))) {
      fs.symlinkSync(path.join(from, name), path.join(to, name));
    }
  }
}

/** What torch needs at run time, and no more: linked from the development environment, not copied. @param {string} venv */
function makeTorchOnlyEnvironment(venv) {
  execFileSync(VENV_PYTHON, ["-m", "venv", "--without-pip", venv]);
  const python = path.join(venv, "bin", "python");
  linkPackages(python, execFileSync(VENV_PYTHON, ["-c", TORCH_FILES], { encoding: "utf8" }).trim().split("\n"));
  return python;
}

/** Prints the top-level entries of site-packages that torch and its own dependencies consist of. */
const TORCH_FILES = `
import importlib.metadata as metadata, re
from packaging.requirements import Requirement
seen, todo, tops = set(), ["torch"], set()
while todo:
    name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
    if name in seen:
        continue
    seen.add(name)
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        continue
    for file in found.files or ():
        if not str(file).startswith((".", "__pycache__")):
            tops.add(file.parts[0])
    for text in found.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            todo.append(requirement.name)
print("\\n".join(sorted(tops)))
`;

/** @param {string} folder @returns {string[]} */
function filesUnder(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(file) : [file];
  });
}

/** Names and times of what an environment holds; what it links to counts as one entry. @param {string} venv */
function listOf(venv) {
  return filesUnder(venv)
    .map((file) => `${path.relative(venv, file)} ${fs.lstatSync(file).mtimeMs}`)
    .sort();
}
