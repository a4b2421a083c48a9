/** What the extension offers VS Code's chat: the server for agents, as the setting allows it, where VS Code takes one. */

import assert from "node:assert/strict";
import * as path from "node:path";
import * as esbuild from "esbuild";
import { ROOT } from "../../../scripts/lib/paths.mjs";

/** @type {any} The part of VS Code's API that it uses; tests change it. */
const vscode = {
  EventEmitter: class {
    event() {}
    fire() {}
    dispose() {}
  },
  Disposable: Object.assign(class {}, { from: () => ({}) }),
  McpStdioServerDefinition: class {
    /** @param {unknown[]} given */
    constructor(...given) {
      this.given = given;
    }
  },
  Uri: { file: (/** @type {string} */ fsPath) => ({ fsPath }) },
  l10n: { t: (/** @type {string} */ text) => text },
  extensions: { getExtension: () => undefined },
  lm: {
    registerMcpServerDefinitionProvider: (/** @type {string} */ id, /** @type {any} */ provider) => {
      registered = { id, provider };
    },
  },
};
/** @type {{id: string, provider: any} | undefined} */
let registered;

const server = { storePath: () => "/store/runs.sqlite", pycachePath: () => "/cache" };
const context = {
  asAbsolutePath: (/** @type {string} */ name) => path.join("/extension", name),
  extension: { packageJSON: { version: "1.2.3" } },
};

const api = { name: "vscode", setup: fakeApi };

/** @param {esbuild.PluginBuild} build */
function fakeApi(build) {
  build.onResolve({ filter: /^vscode$/ }, () => ({ path: "vscode", namespace: "fake" }));
  build.onLoad({ filter: /./, namespace: "fake" }, () => ({ contents: "module.exports = globalThis.fakeVscode;" }));
}

const forget = () => {
  registered = undefined;
};

async function register() {
  forget();
  const built = await esbuild.build({
    entryPoints: [path.join(ROOT, "extension", "src", "host", "agents.ts")],
    bundle: true,
    plugins: [api],
    write: false,
    format: "cjs",
    platform: "node",
  });
  const module = { exports: /** @type {any} */ ({}) };
  new Function("module", "exports", "require", built.outputFiles[0]?.text ?? "")(
    module,
    module.exports,
    (/** @type {string} */ name) => process.getBuiltinModule(name),
  );
  module.exports.registerAgents(context, server);
  return registered;
}

/** @param {boolean} isTrusted @param {boolean} allowRun */
async function offered(isTrusted, allowRun) {
  vscode.workspace = {
    isTrusted,
    workspaceFolders: [{ uri: { fsPath: "/project" } }],
    onDidGrantWorkspaceTrust: () => ({}),
    onDidChangeConfiguration: () => ({}),
    getConfiguration: () => ({
      get: (/** @type {string} */ name, /** @type {unknown} */ none) =>
        ({ "agents.allowRun": allowRun, python: path.join(ROOT, ".venv", "bin", "python") })[name] ?? none,
    }),
  };
  const [definition] = await (await register())?.provider.provideMcpServerDefinitions();
  return definition;
}

describe("the server for agents", () => {
  before(() => {
    Reflect.set(globalThis, "fakeVscode", vscode);
  });
  after(() => {
    Reflect.deleteProperty(globalThis, "fakeVscode");
  });

  it("is started with the selected interpreter, on the editor's store, and may run nothing", async () => {
    const { given, cwd } = await offered(true, false);
    const [label, command, args, , version] = given;
    assert.deepEqual([label, command, version], ["IRScope", path.join(ROOT, ".venv", "bin", "python"), "1.2.3"]);
    assert.deepEqual(args, [
      ...["-X", "pycache_prefix=/cache", "/extension/extension/launch_server.py", "--mcp"],
      ...["--store=/store/runs.sqlite", `--python=${command}`],
    ]);
    assert.equal(cwd.fsPath, "/project");
    assert.equal(registered?.id, "irscope.mcp");
  });

  it("may run scripts if the setting allows it, in a trusted workspace only", async () => {
    const allowed = (await offered(true, true)).given;
    assert.ok(allowed[2].includes("--allow-run"));
    assert.equal(allowed[4], "1.2.3+run", "another version, so that VS Code starts it again");
    assert.ok(!(await offered(false, true)).given[2].includes("--allow-run"));
  });

  it("is not offered where VS Code is too old for it", async () => {
    const { lm } = vscode;
    delete vscode.lm;
    try {
      assert.equal(await register(), undefined);
    } finally {
      vscode.lm = lm;
    }
  });
});
