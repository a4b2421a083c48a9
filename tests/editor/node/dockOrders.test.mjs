/** The view in the panel area is never left blank, in whatever order its page, its place and the server come and go. */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import * as path from "node:path";
import * as esbuild from "esbuild";
import { ROOT } from "../../../scripts/lib/paths.mjs";

/** Enough of the editor for the dock, which is bundled with it. The world of a test is in `globalThis.dockWorld`. */
const EDITOR = `
export const l10n = { t: (text) => text };
const world = () => globalThis.dockWorld;
export class EventEmitter {
  listeners = new Set();
  event = (listener) => (this.listeners.add(listener), { dispose: () => this.listeners.delete(listener) });
  fire(value) { for (const listener of [...this.listeners]) listener(value); }
  dispose() {}
}
export const Disposable = { from: () => ({ dispose() {} }) };
export const ViewColumn = { One: 1, Beside: -2 };
export const Uri = { joinPath: (base, ...parts) => ({ fsPath: [base.fsPath, ...parts].join("/") }), parse: (text) => ({ toString: () => text }) };
export const editorChanged = new EventEmitter();
export const window = {
  get activeTextEditor() { return world().editor; },
  visibleTextEditors: [],
  registerWebviewViewProvider: () => ({ dispose() {} }),
  onDidChangeActiveTextEditor: editorChanged.event,
  onDidChangeTextEditorSelection: () => ({ dispose() {} }),
};
export const workspace = { notebookDocuments: [] };
export const commands = { executeCommand: async () => world().focusView() };
`;
const CLIENT = `
export class RequestType { constructor(method) { this.method = method; } }
export class NotificationType extends RequestType {}
export const ErrorAction = {}, State = {}, MessageType = {}, RevealOutputChannelOn = {}, ShowMessageNotification = {};
export class LanguageClient {}
`;

/** @type {any} */
let code;
/** What waits for the time to pass. @type {Set<() => void>} */
const waiting = new Set();

const timers = {
  setTimeout: (/** @type {() => void} */ run) => (waiting.add(run), run),
  clearTimeout: (/** @type {() => void} */ run) => waiting.delete(run),
};

function passTime() {
  const due = [...waiting];
  waiting.clear();
  due.forEach((run) => run());
}

/** A view, its page, a server and an editor, and what may happen to them. */
class World {
  /** @type {{isThere: boolean, shows?: {type: string, message?: string}} | undefined} The page on the screen, once its script runs. */
  page;
  /** What pages remember: the tab that is shown. */
  tab = "strip";
  /** @type {any} */
  editor;
  /** @type {{resolve: (answer: object) => void, reject: (error: Error) => void}[]} */
  questions = [];
  serverRuns = true;
  /** @type {any} */
  view;
  wantsTab = "strip";

  constructor() {
    /** @type {any} */ (globalThis).dockWorld = this;
    code.editorChanged.listeners.clear();
    waiting.clear();
    this.states = new code.EventEmitter();
    this.script = {
      document: {
        uri: { scheme: "file", toString: () => "file:///train.py" },
        languageId: "python",
        getText: () => "import torch",
      },
      selection: { active: { line: 3 } },
    };
    this.editor = this.script;
    const server = {
      onDidChangeRuns: () => undefined,
      onDidChangeState: this.states.event,
      request: () =>
        this.serverRuns
          ? new Promise((resolve, reject) => this.questions.push({ resolve, reject }))
          : Promise.reject(new code.ServerUnavailable("There is no server.")),
    };
    this.dock = new code.Dock({ fsPath: ROOT }, server, {}, () => undefined);
  }

  /** @type {Record<string, () => unknown>} */
  events = {
    "the view is made, perhaps at another place": () => {
      const old = this.view;
      this.makeView();
      old?.gone.fire(); // After the new one has come.
    },
    "the page's script runs": () => this.load(),
    "the view is hidden": () => {
      if (this.view?.visible) {
        this.page = undefined;
        this.view.visible = false;
        this.view.visibility.fire();
      }
    },
    "the view is shown": () => this.showView(),
    "the server answers": () => this.questions.shift()?.resolve(ANSWER),
    "the server stops": () => {
      this.serverRuns = false;
      this.questions.splice(0).forEach(({ reject }) => reject(new Error("The connection was closed.")));
      this.states.fire("failed");
    },
    "the server is back": () => {
      this.serverRuns = true;
      this.states.fire("ready");
    },
    "the focus goes to a panel": () => this.focus(undefined),
    "the focus goes to the script": () => this.focus(this.script),
    "a command shows another tab": () => {
      this.wantsTab = "findings";
      void this.dock.show("findings");
    },
  };

  /** @param {object | undefined} editor */
  focus(editor) {
    this.editor = editor;
    code.editorChanged.fire(editor);
  }

  makeView() {
    const received = new code.EventEmitter();
    const view = {
      visible: true,
      visibility: new code.EventEmitter(),
      gone: new code.EventEmitter(),
      webview: {
        received,
        onDidReceiveMessage: received.event,
        postMessage: (/** @type {any} */ message) => {
          if (view === this.view && this.page?.isThere) {
            if (message.type === "subject" || message.type === "nothing") {
              this.page.shows = message;
            } else if (message.type === "tab") {
              this.tab = message.tab;
            }
          }
        },
      },
    };
    this.view = Object.assign(view, {
      onDidChangeVisibility: view.visibility.event,
      onDidDispose: view.gone.event,
    });
    this.page = { isThere: false };
    this.dock.resolveWebviewView(view);
  }

  showView() {
    if (this.view?.visible === false) {
      this.page = { isThere: false };
      this.view.visible = true;
      this.view.visibility.fire();
    }
  }

  focusView() {
    if (this.view === undefined) {
      this.makeView();
    }
    this.showView();
  }

  load() {
    if (this.page?.isThere === false) {
      this.page.isThere = true;
      this.view.webview.received.fire({ type: "ready" });
    }
  }

  /** Lets everything that is under way come to its end, with the view on the screen. */
  async settle() {
    this.focusView();
    for (let round = 0; round < 4; round += 1) {
      this.load();
      await turn();
      passTime();
      await turn();
      this.questions.splice(0).forEach(({ resolve }) => resolve(ANSWER));
      await turn();
    }
  }
}

const ANSWER = {
  run: { run: "r", script: "/train.py", lane: "deep" },
  deep: { run: "r" },
  compile: "0/0",
  stage: null,
};

/** Whatever is ready to go on goes on. */
async function turn() {
  for (let step = 0; step < 8; step += 1) {
    await Promise.resolve();
  }
}

describe("the view in the panel area", () => {
  before(async () => {
    const stubs = { vscode: EDITOR, "vscode-languageclient/node": CLIENT };
    const result = await esbuild.build({
      stdin: {
        contents: `export { Dock } from "./host/dock"; export { ServerUnavailable } from "./host/server"; export { editorChanged, EventEmitter } from "vscode";`,
        resolveDir: path.join(ROOT, "extension", "src"),
        loader: "ts",
      },
      bundle: true,
      write: false,
      logLevel: "error", // The stand-in for the editor has only what is used here.
      format: "cjs",
      platform: "node",
      plugins: [
        {
          name: "stubs",
          setup(build) {
            build.onResolve({ filter: /^vscode(-languageclient\/node)?$/ }, (found) => ({
              path: found.path,
              namespace: "stub",
            }));
            build.onLoad({ filter: /.*/, namespace: "stub" }, (found) => ({
              contents: stubs[/** @type {keyof typeof stubs} */ (found.path)],
            }));
          },
        },
      ],
    });
    const module = { exports: {} };
    const given = { module, exports: module.exports, require: createRequire(import.meta.url), ...timers };
    new Function(...Object.keys(given), result.outputFiles[0]?.text ?? "")(...Object.values(given));
    code = module.exports;
  });

  it("asks for no file: script and styles stand in its page, and nothing else is let in", () => {
    const world = new World();
    world.makeView();
    const html = /** @type {string} */ (world.view.webview.html);
    const around = html.replace(/(<(script|style) nonce="[^"]+")>[^]*?<\/\2>/g, "$1>");
    assert.doesNotMatch(around, /\b(src|href)=|https?:/);
    assert.match(around, /"default-src 'none'; style-src 'nonce-[^']+'; script-src 'nonce-[^']+'"/);
    assert.ok(html.length > around.length + 10_000, "script and styles");
  });

  it("shows the run of the script after any order of events", async () => {
    const names = Object.keys(new World().events);
    const orders = Array.from({ length: LENGTH }).reduce(
      (/** @type {string[][]} */ all) => all.flatMap((order) => names.map((name) => [...order, name])),
      [[]],
    );
    let shown = 0;
    for (const order of orders) {
      const world = new World();
      for (const name of order) {
        world.events[name]?.();
        await turn();
        if (name.startsWith("the focus")) {
          passTime();
          await turn();
        }
      }
      await world.settle();
      const { shows } = world.page ?? {};
      assert.ok(shows, `blank after: ${order.join("; ")}`);
      assert.equal(world.tab, world.wantsTab, order.join("; "));
      if (world.editor !== undefined) {
        const wanted = world.serverRuns ? "subject" : "nothing";
        assert.equal(shows.type, wanted, order.join("; "));
        shown += 1;
      }
    }
    assert.ok(shown > orders.length / 2);
  });
});

/** Of the orders; each one more takes ten times as long. */
const LENGTH = 4;
