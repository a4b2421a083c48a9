/** The graph panel where there is nothing to draw, much to draw, or something went wrong; with canned answers. */

import assert from "node:assert/strict";
import { FAKE, onScreen } from "../screen.mjs";
import { itNightly } from "../themes.mjs";
import { until as untilAsked } from "../until.mjs";

describe("the graph panel", () => {
  const workbench = onScreen({ name: "graph", viewport: { width: 1400, height: 900 }, ...FAKE });

  /** @param {string} title the stage's @param {number} nth which of that title */
  async function showGraph(title, nth = 0) {
    await workbench.command("View: Close All Editors");
    await workbench.open("train.py");
    await workbench.command("IRScope: Show FX Graph");
    await workbench.page.locator(".quick-input-title:visible", { hasText: "Show FX Graph" }).waitFor();
    await workbench.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).nth(nth).click();
    return workbench.webview();
  }

  /** The entry of the tree that lies over a box. @param {import("playwright-core").FrameLocator} panel @param {string} name */
  const box = (panel, name) => panel.locator(`#tree [role=treeitem][aria-label^="${name}, "]`);

  it("the view says what to do before the first run", async () => {
    await workbench.open("train.py");
    await workbench.page.locator(".activitybar [aria-label^='IRScope']").first().click();
    await workbench.page
      .locator(".welcome-view-content", { hasText: "No script in this folder has been run yet" })
      .waitFor();
    await workbench.screenshot("tree-empty");
  });

  it("what a trace holds is text, not markup", async () => {
    const panel = await showGraph("Dynamo graph");
    await box(panel, "x").waitFor({ state: "attached" });
    await panel.locator(".age", { hasText: "Older run: deep, 09:59. Newest: fast, 10:15." }).waitFor();
    await box(panel, "x").click({ force: true });
    assert.equal(await panel.locator("#details-detail").innerText(), "f32[8]<script>alert(1)</script>");
    await panel.locator("#tree").press("ArrowDown");
    await panel.locator("#tree").press("ArrowRight");
    assert.equal(await panel.locator("#details-op").innerText(), "aten.<img src=x onerror=alert(1)>");
    assert.equal(await panel.locator("body img, body b, main script, footer script").count(), 0);
    assert.equal(await panel.locator("script", { hasText: "alert" }).count(), 0);
  });

  it("keys walk along the edges and zoom; Enter and Alt+Enter open the places", async () => {
    const panel = await showGraph("Dynamo graph");
    await box(panel, "x").waitFor({ state: "attached" });
    const tree = panel.locator("#tree");
    await tree.focus();
    await tree.press("ArrowDown");
    assert.equal(await panel.locator("#details-name").innerText(), "x");
    assert.equal(await panel.locator("#go-source").isDisabled(), true, "an input has no line");
    await tree.press("ArrowDown");
    assert.equal(await panel.locator("#details-name").innerText(), "relu");
    const active = (await tree.getAttribute("aria-activedescendant")) ?? "";
    assert.match((await panel.locator(`#${active}`).getAttribute("aria-label")) ?? "", /^relu, aten\.relu, f32/);
    assert.equal(
      await panel.locator("#announcement").innerText(),
      await panel.locator(`#${active}`).getAttribute("aria-label"),
    );
    const before = await scaleOf(panel);
    await tree.press("+");
    await until(async () => (await scaleOf(panel)) > before, "it zooms in");
    await tree.press("Enter");
    await workbench.page.locator(".statusbar-item", { hasText: "Ln 5," }).waitFor();
    await tree.press("Alt+Enter");
    await workbench.page.locator(".tab.active", { hasText: "dynamo-graph.py" }).waitFor();
  });

  it("a node leads to its kernel, and the editor's cursor to its nodes", async () => {
    const panel = await showGraph("Dynamo graph");
    await box(panel, "relu").waitFor({ state: "attached" });
    await box(panel, "relu").click({ force: true });
    await panel.locator("#go-kernel-0", { hasText: "Show Generated Kernel" }).click();
    await workbench.page.locator(".tab.active", { hasText: "cpp_fused_mul_relu_0.cpp" }).waitFor();
    await workbench.page.locator(".tab", { hasText: "train.py" }).click();
    await workbench.page.locator(".view-line", { hasText: "torch.relu" }).click();
    await until(
      async () => (await panel.locator("#canvas").getAttribute("data-linked")) === "2",
      "both nodes of the line",
    );
    await workbench.page.locator(".view-line", { hasText: "import torch" }).click();
    await until(async () => (await panel.locator("#canvas").getAttribute("data-linked")) === "0", "none of them");
  });

  it("the mouse pans and zooms", async () => {
    const panel = await showGraph("Dynamo graph");
    await box(panel, "x").waitFor({ state: "attached" });
    const place = async () => await box(panel, "x").boundingBox();
    const canvas = await panel.locator("#canvas").boundingBox();
    assert.ok(canvas);
    const [x, y] = [canvas.x + 40, canvas.y + 40];
    const before = await place();
    await workbench.page.mouse.move(x, y);
    await workbench.page.mouse.down();
    await workbench.page.mouse.move(x + 100, y + 50, { steps: 4 });
    await workbench.page.mouse.up();
    await until(async () => Math.abs(((await place())?.x ?? 0) - (before?.x ?? 0) - 100) < 2, "it follows the mouse");
    const scale = await scaleOf(panel);
    await workbench.page.mouse.wheel(0, -300);
    await until(async () => (await scaleOf(panel)) > scale, "the wheel zooms in");
    await panel.locator("#fit").click();
    await until(async () => Math.abs(((await place())?.y ?? 0) - (before?.y ?? 0)) < 2, "Fit shows all of it again");
  });

  it("a pass is shown over the graph: what it added, removed and changed", async () => {
    const panel = await showGraph("Dynamo graph");
    await box(panel, "x").waitFor({ state: "attached" });
    await panel.locator("#compare").selectOption({ label: "fold" });
    await panel.locator('#tree [aria-label^="mul, "][aria-label$=", added"]').waitFor({ state: "attached" });
    await panel.locator('#tree [aria-label^="relu, "][aria-label$=", changed"]').waitFor({ state: "attached" });
    assert.deepEqual(await panel.locator("#legend li").allInnerTexts(), ["+\nadded", "~\nchanged"]);
    await workbench.screenshot("graph-pass");
    await panel.locator("#compare").selectOption({ label: "this graph" });
    await panel.locator('#tree [aria-label^="mul, "]:not([aria-label$=", added"])').waitFor({ state: "attached" });
  });

  itNightly("comes back after a reload as it was left", async () => {
    const panel = await showGraph("Dynamo graph");
    await box(panel, "x").waitFor({ state: "attached" });
    await panel.locator("#search").fill("relu");
    await panel.locator("#search").press("Enter");
    await panel.locator("#colour").selectOption("dtype");
    const before = await scaleAtRest(panel);
    await panel.locator("#zoom-in").click();
    await until(async () => (await scaleOf(panel)) > before, "it zooms in");
    const scale = await scaleAtRest(panel);
    const loaded = workbench.page.waitForEvent("load");
    await workbench.command("Developer: Reload Window");
    await loaded;
    await workbench.ready();
    const restored = workbench.webview();
    await restored.locator("#matches", { hasText: /^1/ }).waitFor();
    assert.equal(await restored.locator("#search").inputValue(), "relu");
    assert.equal(await restored.locator("#colour").inputValue(), "dtype");
    assert.equal(await restored.locator("#details-name").innerText(), "relu");
    await until(async () => Math.abs((await scaleOf(restored)) - scale) < 0.01, `the zoom is ${scale} again`).catch(
      async (error) => assert.fail(`${error.message}, not ${await scaleOf(restored)}`),
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

  itNightly(
    "50,000 nodes: little of it is laid out, clusters open by keys, and a long layout can be cancelled",
    async () => {
      const panel = await showGraph("Large graph");
      const boxes = async () => Number(await panel.locator("#canvas").getAttribute("data-boxes"));
      await panel.locator("#summary", { hasText: "50,000 nodes" }).waitFor({ timeout: 60_000 });
      await panel.locator('#tree [aria-label^="model.layers, "]').waitFor({ state: "attached" });
      const first = await boxes();
      assert.ok(first > 0 && first <= 200, `${first} boxes`);
      await workbench.screenshot("graph-large");
      await panel.locator("body").evaluate(expandAndCancel);
      await panel.locator("#notice").waitFor({ state: "hidden" });
      assert.equal(await boxes(), first, "what was shown is shown again");
      await panel.locator("#collapse").click();
      await until(async () => (await boxes()) < first, "all closed");
      const tree = panel.locator("#tree");
      await tree.focus();
      await tree.press("Home");
      await tree.press("End");
      const closed = await boxes();
      await tree.press("Enter");
      await until(async () => (await boxes()) > closed, "Enter opens the cluster");
      await tree.press("Control+ArrowDown");
      await until(async () => /layers/.test(await panel.locator("#path").innerText()), "into the cluster");
      await tree.press("Escape");
      await tree.press("-");
      await until(async () => (await boxes()) === closed, "and closes it");
      await panel.locator("#search").fill("name:add_49999");
      await panel.locator("#search").press("Enter");
      await panel.locator("#details-name", { hasText: /^add_49999$/ }).waitFor({ timeout: 60_000 });
      assert.match(await panel.locator("#path").innerText(), /model\.layers[^]*99/);
      await workbench.screenshot("graph-large-found");
    },
  );
});

/** The scale once nothing glides any more. @param {import("playwright-core").FrameLocator} panel */
async function scaleAtRest(panel) {
  let [last, now] = [NaN, await scaleOf(panel)];
  while (now !== last) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    [last, now] = [now, await scaleOf(panel)];
  }
  return now;
}

/** @param {import("playwright-core").FrameLocator} panel pixels for one unit of the picture, when it has come to rest */
async function scaleOf(panel) {
  return Number(await panel.locator("#canvas[data-scale]").getAttribute("data-scale"));
}

/** @param {() => Promise<boolean>} holds @param {string} what */
const until = (holds, what) => untilAsked(holds, (is) => is, what);

/** Opens all clusters, and cancels the layout the moment that this is offered: on a fast machine it is not for long. */
function expandAndCancel() {
  const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (document.querySelector(id));
  return new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (button("#notice-action").textContent === "Cancel" && button("#notice").checkVisibility()) {
        observer.disconnect();
        button("#notice-action").click();
        resolve(undefined);
      }
    });
    observer.observe(document.body, { attributes: true, childList: true, characterData: true, subtree: true });
    button("#expand").click();
  });
}
