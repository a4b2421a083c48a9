/** The packed extension in a VS Code in the browser, for the tests of one `describe`. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { startEditor } from "../../scripts/lib/codeServer.mjs";
import { ROOT, VENV_PYTHON } from "../../scripts/lib/paths.mjs";
import { VSIX } from "../../scripts/package.mjs";
import { ensureCodeServer } from "../../scripts/setup.mjs";
import { launchBrowser, openEditor, STILL } from "./browser.mjs";
import { makeHome, pictureOfFailure } from "./home.mjs";
import { PATIENCE_MS } from "./until.mjs";
import { Workbench } from "./workbench.mjs";

const EDITOR = path.join(ROOT, "tests", "editor");

/** Has the packed extension installed, by the first editor of this process. */
let extensions = "";
process.on("exit", () => extensions !== "" && fs.rmSync(extensions, { recursive: true, force: true }));

/** For what comes at once on a machine with nothing else to do. */

/**
 * @typedef {object} Setting
 * @property {string} name of the folder that the editor works in
 * @property {{width: number, height: number}} viewport
 * @property {(home: string) => string} open prepares what is opened, in `home`, and returns the folder
 * @property {Record<string, unknown>} [settings] the user's, beside the interpreter and the theme
 * @property {NodeJS.ProcessEnv} [env]
 */

/** The server with canned answers instead of the real one, and its workspace. */
export const FAKE = {
  env: { IRSCOPE_LAUNCHER: path.join(EDITOR, "fake_server", "launch.py") },
  open: () => path.join(EDITOR, "workspace"),
};

/** The store of an editor whose settings name none; what `irscope` keeps beside it is beside it, too. @param {string} home */
export const defaultStore = (home) => path.join(home, "default-store", "runs.db");

/** A workbench whose page is there once the hooks of `onScreen` have run. */
class Screen extends Workbench {
  /** Where the editor keeps what it writes. */
  home = "";

  /** The frame of the (one) webview on the screen. @returns {Promise<import("playwright-core").Frame>} */
  async webviewFrame() {
    const outer = await (await this.page.locator("iframe.webview.ready").elementHandle())?.contentFrame();
    const inner = outer?.childFrames()[0];
    assert.ok(inner);
    return inner;
  }
}

/**
 * Starts an editor before the tests of the surrounding `describe` and ends it after them; a test that fails leaves a
 * picture.
 * @param {Setting} setting @returns {Screen} to be used in tests and in hooks that are declared after this call
 */
export function onScreen({ name, viewport, open, settings = {}, env = {} }) {
  const screen = new Screen();
  /** @type {import("../../scripts/lib/codeServer.mjs").Editor | undefined} */
  let editor;
  /** @type {import("playwright-core").Browser | undefined} */
  let browser;

  before(async () => {
    screen.home = makeHome(name);
    const folder = open(screen.home);
    const installed = extensions === "" ? { vsix: VSIX, extensions: makeHome("extensions") } : { extensions };
    editor = await startEditor({
      codeServer: await ensureCodeServer(),
      ...installed,
      home: screen.home,
      settings: {
        ...STILL,
        "irscope.python": VENV_PYTHON,
        "workbench.colorTheme": "Default Dark Modern",
        "irscope.fixes.trySeconds": 0, // A trial is a run.
        ...settings,
      },
      env: { IRSCOPE_STORE: defaultStore(screen.home), ...env }, // Not the user's own.
    });
    extensions = installed.extensions;
    browser = await launchBrowser();
    screen.page = await browser.newPage({ viewport });
    screen.page.setDefaultTimeout(PATIENCE_MS);
    await openEditor(screen.page, editor.address(folder));
    await screen.ready();
  });

  after(async () => {
    await browser?.close();
    await editor?.stop();
    if (screen.home !== "") {
      fs.rmSync(screen.home, { recursive: true, force: true });
    }
  });

  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      // A hook that fails would end the other tests.
      await screen.page.screenshot({ path: pictureOfFailure(this.currentTest.title) }).catch(() => undefined);
    }
  });

  return screen;
}
