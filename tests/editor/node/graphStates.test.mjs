/** The graph panel where there is nothing to draw, much to draw, or something went wrong; with canned answers. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { startEditor } from "../../../scripts/lib/codeServer.mjs";
import { OUT, ROOT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { VSIX } from "../../../scripts/package.mjs";
import { ensureCodeServer } from "../../../scripts/setup.mjs";
import { launchBrowser } from "../browser.mjs";
import { Workbench } from "../workbench.mjs";

const EDITOR = path.join(ROOT, "tests", "editor");

describe("the graph panel", function () {
  this.timeout(120_000);
  /** @type {import("../../../scripts/lib/codeServer.mjs").Editor} */
  let editor;
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {Workbench} */
  let workbench;
  /** @type {string} */
  let home;

  before(async () => {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    fs.mkdirSync(OUT, { recursive: true });
    home = fs.mkdtempSync(path.join(OUT, "graph-"));
    editor = await startEditor({
      codeServer: await ensureCodeServer(),
      vsix: VSIX,
      home,
      settings: { "irscope.python": VENV_PYTHON, "workbench.colorTheme": "Default Dark Modern" },
      env: { IRSCOPE_LAUNCHER: path.join(EDITOR, "fake_server", "launch.py") },
    });
    browser = await launchBrowser();
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    workbench = new Workbench(page, SCREENSHOTS);
    await page.goto(editor.address(path.join(EDITOR, "workspace")));
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
    }
  });

  /** @param {string} title the stage's @param {number} nth which of that title */
  async function showGraph(title, nth = 0) {
    await workbench.command("View: Close All Editors");
    await workbench.open("train.py");
    await workbench.command("IRScope: Show FX Graph");
    await workbench.page.locator(".quick-input-title:visible", { hasText: "Show FX Graph" }).waitFor();
    await workbench.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).nth(nth).click();
    return workbench.webview();
  }

  it("the view says what to do before the first run", async () => {
    await workbench.open("train.py");
    await workbench.page.locator(".activitybar [aria-label^='IRScope']").first().click();
    await workbench.page.locator(".welcome-view-content", { hasText: "No run yet" }).waitFor();
    await workbench.screenshot("tree-empty");
  });

  it("what a trace holds is text, not markup", async () => {
    const panel = await showGraph("Dynamo graph");
    await panel.locator("svg .node").first().click();
    assert.equal(await panel.locator("#details-detail").innerText(), "f32[8] <script>alert(1)</script>");
    assert.equal(await panel.locator("svg script, svg a, svg [onclick], svg [href]").count(), 0);
    assert.equal(await panel.locator("svg [fill]:not([fill='none'])").count(), 0, "no colour of its own");
  });

  it("keys walk along the edges and zoom; Enter and Alt+Enter open the places", async () => {
    const panel = await showGraph("Dynamo graph");
    await panel.locator("svg .node").first().waitFor();
    await panel.locator("#canvas").focus();
    await panel.locator("#canvas").press("ArrowDown");
    assert.equal(await panel.locator("#details-name").innerText(), "x");
    assert.equal(await panel.locator("#go-source").isDisabled(), true, "an input has no line");
    await panel.locator("svg .node.selected").press("ArrowDown");
    assert.equal(await panel.locator("#details-name").innerText(), "relu");
    assert.match((await panel.locator("svg .node.selected").getAttribute("aria-label")) ?? "", /^relu, /);
    const before = await panel.locator("svg").getAttribute("viewBox");
    await panel.locator("svg .node.selected").press("+");
    assert.notEqual(await panel.locator("svg").getAttribute("viewBox"), before);
    await panel.locator("svg .node.selected").press("Enter");
    await workbench.page.locator(".statusbar-item", { hasText: "Ln 5," }).waitFor();
    await panel.locator("svg .node.selected").press("Alt+Enter");
    await workbench.page.locator(".tab.active", { hasText: "dynamo-graph.py" }).waitFor();
  });

  it("the mouse pans and zooms", async () => {
    const panel = await showGraph("Dynamo graph");
    await panel.locator("svg .node").first().waitFor();
    const view = async () => ((await panel.locator("svg").getAttribute("viewBox")) ?? "").split(" ").map(Number);
    const box = await panel.locator("#canvas").boundingBox();
    assert.ok(box);
    const [x, y] = [box.x + 40, box.y + 40];
    const before = await view();
    await workbench.page.mouse.move(x, y);
    await workbench.page.mouse.down();
    await workbench.page.mouse.move(x + 100, y + 50, { steps: 4 });
    await workbench.page.mouse.up();
    const panned = await view();
    assert.ok((panned[0] ?? 0) < (before[0] ?? 0) && (panned[1] ?? 0) < (before[1] ?? 0), `${before} → ${panned}`);
    await workbench.page.mouse.wheel(0, -300);
    await workbench.page.waitForTimeout(200);
    assert.ok(((await view())[2] ?? 0) < (panned[2] ?? 0), "the wheel zooms in");
    await panel.locator("#fit").click();
    assert.equal(((await view())[0] ?? 0) <= 0, true, "Fit shows all of it");
  });

  it("comes back after a reload as it was left", async () => {
    const panel = await showGraph("Dynamo graph");
    await panel.locator("svg .node").first().waitFor();
    await panel.locator("#search").fill("relu");
    await panel.locator("#search").press("Enter");
    await panel.locator("#zoom-in").click();
    const view = await panel.locator("svg").getAttribute("viewBox");
    const loaded = workbench.page.waitForEvent("load");
    await workbench.command("Developer: Reload Window");
    await loaded;
    await workbench.ready();
    const restored = workbench.webview();
    await restored.locator("svg .node.current-match, svg .node.match").first().waitFor();
    assert.equal(await restored.locator("#search").inputValue(), "relu");
    assert.equal(await restored.locator("#details-name").innerText(), "relu");
    const scale = (/** @type {string | null} */ box) => Number(box?.split(" ")[2]);
    assert.ok(
      Math.abs(scale(await restored.locator("svg").getAttribute("viewBox")) - scale(view)) < 1,
      "the same zoom",
    );
  });

  it("an empty graph says so", async () => {
    const panel = await showGraph("Forward graph");
    await panel.locator("#notice", { hasText: "no nodes" }).waitFor();
    await workbench.screenshot("graph-empty");
  });

  it("a server's error is shown as text, with a way to try again", async () => {
    const panel = await showGraph("Broken graph");
    await panel.locator("#notice-detail", { hasText: "The stage is <b>damaged</b>." }).waitFor();
    await panel.locator("#notice-action", { hasText: "Try Again" }).waitFor();
    await workbench.screenshot("graph-error");
  });

  it("a large graph leaves the panel alive, can be cancelled, and is drawn", async () => {
    const panel = await showGraph("Large graph");
    await panel.locator("#notice-action", { hasText: "Cancel" }).click();
    await panel.locator("#notice-text", { hasText: "cancelled" }).waitFor();
    await workbench.screenshot("graph-cancelled");
    await panel.locator("#notice-action", { hasText: "Lay Out Again" }).click();
    await panel.locator("svg .node").first().waitFor({ timeout: 90_000 });
    assert.equal(await panel.locator("svg .node").count(), 1500);
    await workbench.screenshot("graph-large");
  });
});
