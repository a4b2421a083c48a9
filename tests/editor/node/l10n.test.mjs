/** Texts of the packed extension in a real editor: in English, and in a language whose texts are the English ones in brackets. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { startEditor } from "../../../scripts/lib/codeServer.mjs";
import { ROOT, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { VSIX } from "../../../scripts/package.mjs";
import { ensureCodeServer } from "../../../scripts/setup.mjs";
import { launchBrowser } from "../browser.mjs";
import { makeHome, pictureOfFailure } from "../home.mjs";
import { FAKE } from "../screen.mjs";
import { PATIENCE_MS, until } from "../until.mjs";
import { Workbench } from "../workbench.mjs";

/** The name for a language that nobody speaks. */
const BRACKETS = "qps-ploc";
const PACKAGE = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));

/** An extension that says which manifest the editor gave to ours. */
const PROBE = {
  "package.json": JSON.stringify({
    name: "probe",
    publisher: "irscope-tests",
    version: "1.0.0",
    engines: { vscode: PACKAGE.engines.vscode },
    main: "./main.js",
    activationEvents: ["onStartupFinished"],
    contributes: {},
  }),
  "main.js": `
    const vscode = require("vscode");
    exports.activate = () => {
      const manifest = vscode.extensions.getExtension("irscope.irscope").packageJSON;
      const file = process.env.IRSCOPE_PROBED;
      require("fs").writeFileSync(file + ".part", JSON.stringify({ language: vscode.env.language, manifest }));
      require("fs").renameSync(file + ".part", file);
    };`,
};

describe("the texts of the packed extension", () => {
  const workbench = new Workbench();
  /** @type {string} */
  let home;
  /** @type {import("../../../scripts/lib/codeServer.mjs").Editor | undefined} */
  let editor;
  /** @type {import("playwright-core").Browser | undefined} */
  let browser;

  before(async () => {
    home = makeHome("l10n");
    editor = await startEditor({
      codeServer: await ensureCodeServer(),
      home,
      vsix: VSIX,
      settings: { "irscope.python": VENV_PYTHON },
      env: { ...FAKE.env, IRSCOPE_PROBED: path.join(home, "probed.json") },
    });
    translate(path.join(home, "extensions"));
    addProbe(path.join(home, "extensions"));
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await editor?.stop();
    fs.rmSync(home, { recursive: true, force: true });
  });

  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      await workbench.page.screenshot({ path: pictureOfFailure(this.currentTest.title) }).catch(() => undefined);
    }
    await workbench.page.close();
  });

  /** Opens a window in a language, and says what the manifest is there. @param {string} [language] English if left out */
  async function open(language) {
    assert.ok(editor !== undefined && browser !== undefined);
    const probed = path.join(home, "probed.json");
    fs.rmSync(probed, { force: true });
    workbench.page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
    workbench.page.setDefaultTimeout(PATIENCE_MS);
    if (language !== undefined) {
      // As the file of a language pack does it, which would have to be downloaded.
      await workbench.page.addInitScript(`globalThis._VSCODE_NLS_LANGUAGE = ${JSON.stringify(language)};`);
    }
    await workbench.page.goto(editor.address(FAKE.open()));
    await workbench.ready();
    await until(
      async () => fs.existsSync(probed),
      (there) => there,
      "the manifest",
    );
    return JSON.parse(fs.readFileSync(probed, "utf8"));
  }

  it("are those of package.json", async () => {
    const { language, manifest } = await open();
    assert.equal(language, "en");
    assert.deepEqual(likeIn(manifest, PACKAGE), PACKAGE);
  });

  it("are shown in another language, in the manifest's places and in the extension's", async () => {
    const { language, manifest } = await open(BRACKETS);
    assert.equal(language, BRACKETS);
    assert.equal(manifest.description, `[${PACKAGE.description}]`);
    const { page } = workbench;
    await workbench.open("train.py");
    await page.locator(".statusbar-item[id*='irscope']:visible").click();
    const rows = page.locator(".quick-input-list .monaco-list-row");
    await rows.filter({ hasText: "[Show Runs]" }).waitFor();
    assert.equal(await page.locator(".quick-input-widget input").getAttribute("placeholder"), "[What to do?]");
    await rows.filter({ hasText: "[Show Runs]" }).click();
    await page.locator(".pane-header, .composite.title", { hasText: "[Runs]" }).first().waitFor();
    await workbench.command("[IRScope]: [Show Log]");
    await workbench.screenshot("l10n");
  });
});

/** Puts each text of the extension into brackets, as a file of translations. @param {string} extensions */
function translate(extensions) {
  const name = fs.readdirSync(extensions).find((each) => each.startsWith("irscope.irscope-"));
  assert.ok(name !== undefined, "the extension is installed");
  for (const file of ["package.nls.json", "l10n/bundle.l10n.json"]) {
    const english = path.join(extensions, name, file);
    const texts = Object.entries(JSON.parse(fs.readFileSync(english, "utf8")));
    const translated = Object.fromEntries(texts.map(([key, text]) => [key, `[${text}]`]));
    fs.writeFileSync(english.replace(/json$/, `${BRACKETS}.json`), JSON.stringify(translated));
  }
}

/** Installs the probe. @param {string} extensions */
function addProbe(extensions) {
  const folder = path.join(extensions, "probe");
  fs.mkdirSync(folder);
  for (const [name, text] of Object.entries(PROBE)) {
    fs.writeFileSync(path.join(folder, name), text);
  }
  const list = path.join(extensions, "extensions.json");
  const own = {
    identifier: { id: "irscope-tests.probe" },
    version: "1.0.0",
    location: { $mid: 1, path: folder, scheme: "file" },
    relativeLocation: "probe",
  };
  fs.writeFileSync(list, JSON.stringify([...JSON.parse(fs.readFileSync(list, "utf8")), own]));
}

/**
 * Without what the editor adds to a manifest, as the attributes of every debugger, and with conditions as we have written
 * them.
 * @param {any} given @param {any} wanted @returns {any}
 */
function likeIn(given, wanted) {
  if (Array.isArray(given) && Array.isArray(wanted)) {
    const own = given.filter((each) => typeof each === "object" || wanted.includes(each));
    return own.map((each, at) => likeIn(each, wanted[at]));
  }
  if ([given, wanted].some((each) => each === null || typeof each !== "object")) {
    return given;
  }
  const common = Object.entries(given).filter(([key]) => key in wanted);
  const isCondition = (/** @type {string} */ key) => key === "when" || key === "enablement";
  return Object.fromEntries(
    common.map(([key, each]) => [key, isCondition(key) ? wanted[key] : likeIn(each, wanted[key])]),
  );
}
