/**
 * Names and texts of a malicious script, and of a store that came from elsewhere, are text wherever VS Code shows them:
 * no markup, no link, no icon, no command, and no character that turns the direction.
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { pathToFileURL } from "node:url";
import { startEditor } from "../../../scripts/lib/codeServer.mjs";
import { OUT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { VSIX } from "../../../scripts/package.mjs";
import { ensureCodeServer } from "../../../scripts/setup.mjs";
import { launchBrowser } from "../browser.mjs";
import { hostileStore } from "../viewPage.mjs";
import { Workbench } from "../workbench.mjs";

const PATIENCE_MS = 60_000;
const RUN_MS = 170_000;
/** As a run of it would look like: the function, the exception and what it says have such a name. */
const SCRIPT = `\
import torch

NAME = "f<img src=x onerror=parent.hacked()>$(bug)[l](command:workbench.action.closeAllEditors)\\x1b[31m\\u202eevil"


def renamed(function):
    function.__code__ = function.__code__.replace(co_name=NAME)
    return function


@torch.compile
@renamed
def f(x):
    return x.relu() * 2


f(torch.ones(8))
raise type(NAME, (Exception,), {})(NAME)
`;

describe("a malicious script in the editor", function () {
  this.timeout(240_000);
  /** @type {import("../../../scripts/lib/codeServer.mjs").Editor} */
  let editor;
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {Workbench} */
  let workbench;
  /** @type {string} */
  let home;
  let hacked = false;

  before(async () => {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    fs.mkdirSync(OUT, { recursive: true });
    home = fs.mkdtempSync(path.join(OUT, "hostile-"));
    const folder = path.join(home, "work");
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, "raises.py"), SCRIPT);
    const { store, script } = hostileStore(folder);
    editor = await startEditor({
      codeServer: await ensureCodeServer(),
      vsix: VSIX,
      home,
      settings: {
        "irscope.python": VENV_PYTHON,
        "irscope.storePath": store,
        "irscope.run.onSave": "off",
        "irscope.inlayHints.enabled": true,
        "workbench.colorTheme": "Default Dark Modern",
        "editor.minimap.enabled": false,
        "editor.fontSize": 12,
      },
    });
    browser = await launchBrowser();
    const page = await browser.newPage({ viewport: { width: 1500, height: 1000 } });
    await page.exposeFunction("hacked", () => {
      hacked = true;
    });
    workbench = new Workbench(page, SCREENSHOTS);
    const open = `vscode-remote://${new URL(editor.origin).host}${pathToFileURL(script).pathname}`;
    await page.goto(editor.address(folder, { payload: JSON.stringify([["openFile", open]]) }));
    await workbench.ready();
  });

  after(async () => {
    await browser?.close();
    await editor?.stop();
    if (home !== undefined) {
      fs.rmSync(home, { recursive: true, force: true });
    }
  });

  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      await workbench.screenshot(`failed-${this.currentTest.title.replace(/\W+/g, "-")}`);
    } else {
      await isHarmless();
    }
  });

  /** Nothing on the screen was made of what the script said. */
  async function isHarmless() {
    for (const frame of workbench.page.frames()) {
      const found = await frame
        .evaluate(() => ({
          elements: document.querySelectorAll(
            "img[src='x'], b, .codicon-bug, .codicon[class*='bug']:not([class*='debug'])",
          ).length,
          links: [...document.querySelectorAll("a")]
            .map((each) => each.getAttribute("data-href") ?? each.getAttribute("href") ?? "")
            .filter((href) => /^(?:javascript|data):|closeAllEditors|127\.0\.0\.1:9/.test(href)),
        }))
        .catch(() => ({ elements: 0, links: [] })); // A frame that has gone meanwhile.
      assert.deepEqual(found, { elements: 0, links: [] }, frame.url());
    }
    assert.equal(hacked, false, "its script ran");
  }

  /** What a part of the window says, in which nothing is hidden and nothing turns. @param {string} selector */
  async function said(selector) {
    const text = (await workbench.page.locator(selector).allInnerTexts()).join("\n");
    // eslint-disable-next-line no-control-regex
    assert.doesNotMatch(text, /[\u202e\u001b]/, selector);
    return text;
  }

  it("in the runs' tree", async () => {
    await workbench.page.locator(".squiggly-warning").first().waitFor({ timeout: PATIENCE_MS });
    await workbench.command("IRScope: Focus on Runs View");
    const tree = workbench.page.locator(".pane-body .monaco-list", { has: workbench.page.locator("text=/train/") });
    await tree.first().waitFor({ timeout: PATIENCE_MS });
    for (let depth = 0; depth < 3; depth += 1) {
      const closed = tree.locator(".monaco-tl-twistie.collapsed");
      for (let left = await closed.count(); left > 0; left -= 1) {
        await closed.first().click();
        await workbench.page.waitForTimeout(600);
      }
    }
    const text = await said(".pane-body .monaco-list");
    for (const part of [
      "0/0 f<img src=x onerror=parent.hacked()>",
      "$(bug)",
      "\\u202eevil",
      "\\u001b[31m",
      "gap<img",
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    await tree.locator(".monaco-list-row", { hasText: "0/0 f<img" }).first().hover();
    await workbench.page.waitForTimeout(1_200);
    assert.match(await said(".monaco-hover:not(.hidden), .workbench-hover"), /Compile 0\/0 of f<img/);
    await workbench.screenshot("hostile-tree");
  });

  it("in the problems, the hover, the lens and the hints", async () => {
    const { page } = workbench;
    await workbench.command("View: Focus Active Editor Group");
    await page.locator(".codelens-decoration a").first().waitFor({ timeout: PATIENCE_MS });
    await page.locator(".view-line", { hasText: "<b onmouseover" }).first().waitFor({ timeout: PATIENCE_MS });
    await page.locator(".squiggly-warning").first().hover();
    const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "What you can do" });
    await hover.first().waitFor();
    await page.waitForTimeout(600);
    const text = (await said(".monaco-hover:not(.hidden)")).replaceAll("\u00a0", " ");
    assert.match(text, /<img src=x onerror=parent.hacked\(\)><script>/);
    assert.match(text, /\[x\]\(command:workbench.action.closeAllEditors\)/);
    assert.equal(await hover.locator("img").count(), 0, "no picture was fetched");
    await workbench.screenshot("hostile-hover");
    await isHarmless();
    await page.keyboard.press("Escape");
    await workbench.command("Problems: Focus on Problems View");
    await page.locator(".markers-panel .monaco-list-row", { hasText: "Graph break" }).first().waitFor();
    assert.match(await said(".markers-panel"), /<script>parent.hacked/);
    await workbench.screenshot("hostile-problems");
  });

  it("in lists to choose from", async () => {
    const { page } = workbench;
    await workbench.command("View: Focus Active Editor Group");
    await page.keyboard.press("Control+G");
    await page.locator(".quick-input-widget input").fill(":4");
    await page.keyboard.press("Enter");
    await workbench.command("IRScope: Show Generated Kernel");
    await page
      .locator(".quick-input-title:visible", { hasText: "Show Generated Kernel" })
      .waitFor({ timeout: PATIENCE_MS });
    await page.waitForTimeout(500);
    assert.match(await said(".quick-input-list"), /cpp<img[^]*\$\(bug\)\[l\][^]*other<img/);
    await workbench.screenshot("hostile-choice");
    await isHarmless();
    await page.keyboard.press("Escape");
    await workbench.command("IRScope: Show Stage…");
    await page.locator(".quick-input-title:visible", { hasText: "Show Stage" }).waitFor({ timeout: PATIENCE_MS });
    await page.waitForTimeout(500);
    assert.match(await said(".quick-input-list"), /pass<img[^]*\$\(bug\)/i);
    await isHarmless();
    await page.keyboard.press("Escape");
  });

  it("in the panels", async () => {
    const { page } = workbench;
    for (const [command, text] of /** @type {const} */ ([
      ["IRScope: Show Findings", "<script>parent.hacked"],
      ["IRScope: Show Pipeline", "f<img src=x"],
    ])) {
      await workbench.command(command);
      const frame = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
      await frame.getByText(text).first().waitFor({ timeout: PATIENCE_MS });
      await page.waitForTimeout(500);
      assert.doesNotMatch(await frame.locator("body").innerText(), /\u202e/);
      await isHarmless();
    }
    await workbench.screenshot("hostile-panels");
  });

  it("in the debugger", async () => {
    const { page } = workbench;
    await workbench.command("IRScope: Debug Stored Run");
    await page.locator(".debug-toolbar").waitFor({ timeout: PATIENCE_MS });
    await page.locator(".debug-call-stack .monaco-list-row").first().waitFor({ timeout: PATIENCE_MS });
    await page.waitForTimeout(2_000);
    await said(".debug-call-stack");
    await said(".debug-variables");
    await workbench.screenshot("hostile-debug");
    await isHarmless();
    await workbench.command("Debug: Stop");
    await page.locator(".debug-toolbar").waitFor({ state: "hidden" });
  });

  it("in the status bar while it runs, and in what is said at its end", async () => {
    const { page } = workbench;
    await workbench.command("View: Close All Editors");
    await workbench.open("raises.py");
    await workbench.command("IRScope: Run on This File");
    const message = page.locator(".notification-list-item", { hasText: "IRScope: f<img src=x" });
    const late = Date.now() + RUN_MS;
    const phases = new Set();
    while ((await message.count()) === 0 && Date.now() < late) {
      phases.add(await said(".part.statusbar"));
      await isHarmless();
      await page.waitForTimeout(100);
    }
    await message.first().waitFor({ timeout: 5_000 });
    assert.match(await said(".notification-list-item"), /\$\(bug\)\[l\] \(command:workbench.action.closeAllEditors\)/);
    assert.equal(await message.locator(".notification-list-item-message a").count(), 0, "no link in the message");
    await workbench.screenshot("hostile-notification");
    assert.ok(
      [...phases].some((each) => /f<img src=x/.test(each)),
      `a phase was seen: ${[...phases].join("\n")}`,
    );
    await workbench.command("IRScope: Show Script Output");
    await page.waitForTimeout(1_000);
    await isHarmless();
  });
});
