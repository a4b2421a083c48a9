/**
 * What a user sees, with the packed extension, the real server and real torch, on the first example.
 * Each step leaves a picture in .screenshots/ for somebody to look at.
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";
import { onScreen } from "../screen.mjs";
import { itNightly, nightly } from "../themes.mjs";
import { until } from "../until.mjs";

const SCRIPT = "gpt_training.py";
const SOURCE = path.join(ROOT, "examples", SCRIPT);
/** How long the batches of the example are, one after the other. */
const STEPS = "(17, 17, 25, 33, 17, 25)";
/** A deep run of the example with a cold compiler cache, on a slow machine. */
const RUN_MS = 300_000;

describe("on the screen", () => {
  const workbench = onScreen({
    name: "rendering",
    viewport: { width: 1400, height: 900 },
    settings: { "irscope.run.budgetSeconds": 280, "files.autoSave": "off" },
    open: (home) => {
      const folder = path.join(home, "examples");
      fs.mkdirSync(folder);
      const source = fs.readFileSync(SOURCE, "utf8");
      assert.ok(source.includes(STEPS));
      // Without its second compile: nothing here looks at that.
      fs.writeFileSync(path.join(folder, SCRIPT), source.replace(STEPS, "(17, 17)"));
      fs.writeFileSync(path.join(folder, "plain.py"), "print('nothing to compile here')\n");
      fs.writeFileSync(path.join(folder, "torchy.py"), "import torch\n\nprint(torch.ones(2))\n");
      return folder;
    },
  });

  /** How much of the extension can be seen, by what it is. */
  async function shown() {
    const { page } = workbench;
    const counted = {
      status: page.locator(".statusbar-item[id*='irscope']:visible"),
      "activity bar": page.locator(".activitybar .action-item:visible", {
        has: page.locator("[aria-label^='IRScope']"),
      }),
      panel: page.locator(".panel .composite-bar .action-item:visible", { hasText: "IRScope" }),
      title: page.locator(".editor-actions [aria-label*='Analyze This File']:visible"),
      lens: page.locator(".codelens-decoration a:visible"),
      problem: page.locator(".squiggly-warning, .squiggly-info, .squiggly-hint"),
      walkthrough: page.locator(".tab", { hasText: /Walkthrough|Welcome/ }),
    };
    const found = await Promise.all(
      Object.entries(counted).map(async ([what, locator]) => /** @type {const} */ ([what, await locator.count()])),
    );
    return found.filter(([, count]) => count > 0).map(([what]) => what);
  }

  /** The entries of the context menu of the text. */
  async function menu() {
    const { page } = workbench;
    await page.locator(".view-line").first().click({ button: "right" });
    const entries = page.locator(".context-view .action-label, .monaco-menu .action-label");
    await entries.first().waitFor();
    await page.waitForTimeout(500);
    const texts = await entries.allInnerTexts();
    await page.keyboard.press("Escape");
    await entries.first().waitFor({ state: "hidden" });
    await page.locator(".view-line").last().click();
    return texts.filter((each) => /Generated Kernel|Stage|FX Graph|Pipeline/.test(each));
  }

  it("nothing is shown where torch is not used, also when the file is saved", async () => {
    await workbench.open("plain.py");
    await workbench.page.waitForTimeout(4_000);
    await workbench.page.keyboard.press("Control+End");
    await workbench.page.keyboard.type("# edited");
    await workbench.command("File: Save");
    await workbench.page.waitForTimeout(4_000);
    assert.deepEqual(await shown(), []);
    assert.deepEqual(await menu(), []);
    await workbench.screenshot("plain-file");
    await workbench.command("IRScope: Analyze This File");
    await workbench.page.getByText("plain.py ran to its end, and nothing was compiled").first().waitFor();
    await workbench.screenshot("nothing-compiled");
    await workbench.command("Notifications: Clear All Notifications");
  });

  it("of a file that uses torch there is more, and it goes where the next file does not", async () => {
    await workbench.open("torchy.py");
    await until(
      shown,
      (there) => ["status", "activity bar", "title"].every((what) => there.includes(what)),
      "what there is",
    );
    assert.ok((await menu()).length >= 3);
    await workbench.open("plain.py");
    await workbench.page.locator(".statusbar-item[id*='irscope']").waitFor({ state: "hidden" });
    // Runs and panels stay within reach, as long as the window is open.
    await until(
      async () => (await shown()).filter((what) => !["activity bar", "panel"].includes(what)),
      (there) => there.length === 0,
      "nothing else of it",
    );
  });

  it("a finding is a squiggle, an entry of Problems and a hover", async () => {
    await workbench.goToText(SOURCE, "loss > 5");
    await workbench.page.locator(".squiggly-warning, .squiggly-info").first().waitFor({ timeout: RUN_MS });
    await workbench.command("Problems: Focus on Problems View");
    // By its text: the order of the rows in the page is not the one on the screen, and more come while the script runs.
    const problem = workbench.page.locator(".markers-panel .monaco-list-row", { hasText: "the graph is cut here" });
    await problem.first().waitFor();
    await workbench.screenshot("problems");
    await problem.first().click();
    await workbench.command("Show or Focus Hover");
    const hover = workbench.page.locator(".monaco-hover:not(.hidden)", { hasText: /graph break|recompil/i });
    await hover.first().waitFor();
    const calls = hover.first().locator("details", { hasText: "called at module level" });
    await calls.waitFor({ state: "attached" });
    assert.equal(await calls.locator("li").first().isVisible(), false, "the stack is folded");
    const text = await hover.first().innerText();
    assert.equal(text.split("while tracing; the graph is cut here").length, 2, text);
    // Its cost is known when the run has ended; in which compiles it was is known at once.
    const order = [
      /while tracing;/,
      /What to do/,
      /tensors have shapes but no values/,
      /compiles? 0/,
      /calls above it/,
    ];
    const places = order.map((part) => text.search(part));
    assert.ok(
      places.every((place, index) => place > (places[index - 1] ?? -1)),
      text,
    );
    await workbench.screenshot("hover");
    await calls.locator("summary").click();
    await calls.locator("li").first().waitFor();
    await workbench.screenshot("hover-stack");
    await workbench.page.keyboard.press("Escape");
    await workbench.command("View: Toggle Panel Visibility");
  });

  it("a lens stands over the compiled function", async () => {
    await workbench.goToText(SOURCE, "def loss(");
    const lens = workbench.page.locator(".codelens-decoration a", { hasText: /graph/ });
    await lens.first().waitFor();
    await until(
      () => lens.first().innerText(),
      (text) => /\d+ graphs? · .*\d+ break/.test(text),
      "the lens counts breaks",
    );
    await workbench.screenshot("lens");
  });

  it("the kernel of a line opens beside it, and the tree holds the run", async () => {
    await workbench.page.locator(".activitybar [aria-label^='IRScope']").first().click();
    await workbench.page.locator(".monaco-list-row[aria-label^='Run of']").first().waitFor();
    await workbench.goToText(SOURCE, "scores = q @ k");
    await workbench.command("IRScope: Show Generated Kernel");
    await workbench.page.waitForTimeout(2000);
    await workbench.screenshot("progress");
    await workbench.pickFirst("Show Generated Kernel", RUN_MS);
    await workbench.page.locator(".tab", { hasText: /\.cpp/ }).first().waitFor();
    await workbench.page.waitForTimeout(1500);
    await workbench.screenshot("kernel");
    const rows = workbench.page.locator(".sidebar .monaco-list-row");
    await rows.and(workbench.page.locator("[aria-label^='Run of']")).first().click();
    await rows.filter({ hasText: "0/0 Trainer.loss" }).first().click();
    await rows
      .filter({ has: workbench.page.getByText("Kernels", { exact: true }) })
      .first()
      .click();
    await rows.filter({ hasText: "cpp_fused" }).first().waitFor();
    await workbench.page.mouse.move(700, 400);
    await workbench.screenshot("tree");
  });

  itNightly("an FX graph is drawn, searched, walked with the keys and leads to the source", async () => {
    await workbench.command("View: Close All Editors");
    await workbench.open(SCRIPT);
    await workbench.command("IRScope: Show FX Graph");
    await workbench.pickFirst("Show FX Graph", RUN_MS, "graph-choice");
    const panel = workbench.webview();
    await panel.locator("#tree [role=treeitem]").first().waitFor({ state: "attached", timeout: 60_000 });
    await until(
      () => panel.locator("#canvas").getAttribute("data-boxes"),
      (boxes) => Number(boxes) > 10,
      "boxes are drawn",
    );
    await workbench.page.waitForTimeout(800);
    await workbench.screenshot("graph-dark");

    await panel.locator("#search").fill("op:softmax");
    await panel.locator("#results [role=option]", { hasText: "softmax" }).first().waitFor();
    await workbench.screenshot("graph-results");
    await panel.locator("#search").press("Enter");
    await panel.locator("#matches", { hasText: /^1 of \d+$/ }).waitFor();
    const found = panel.locator("#tree [aria-selected=true]");
    await found.waitFor({ state: "attached" });
    await workbench.page.waitForTimeout(600); // It glides there.
    await workbench.screenshot("graph-search");

    await panel.locator("#tree").focus();
    await panel.locator("#tree").press("ArrowDown");
    await panel.locator("#details-op", { hasNotText: "softmax" }).waitFor();
    await panel.locator("#tree").press("ArrowUp");
    await panel.locator("#details-op", { hasText: "softmax" }).waitFor();
    await (await found.elementHandle())?.waitForElementState("stable"); // The picture glides to it.
    await found.click({ force: true });
    await panel.locator("#details-op", { hasText: "softmax" }).waitFor();
    const lines = fs.readFileSync(SOURCE, "utf8").split("\n");
    await until(
      () => workbench.cursorLine(),
      (line) => /softmax/.test(lines[line - 1] ?? ""),
      "the node leads to its line",
    );
    await workbench.screenshot("graph-to-source");
  });

  itNightly("the graph takes its colours from other themes too", async () => {
    const panel = workbench.webview();
    await panel.locator("#search").fill("");
    const drawn = () =>
      panel.locator("#picture").evaluate((/** @type {any} */ canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        /** @type {Record<string, number>} */
        const shades = {};
        for (let at = 0; at < data.length; at += 4) {
          const shade = Math.round((data[at] + data[at + 1] + data[at + 2]) / 3 / 16);
          shades[shade] = (shades[shade] ?? 0) + 1;
        }
        const [most] = Object.entries(shades).sort((left, right) => right[1] - left[1])[0] ?? ["0"];
        const all = Object.keys(shades).map(Number);
        return { most: Number(most) * 16, darkest: Math.min(...all) * 16, lightest: Math.max(...all) * 16 };
      });
    for (const [theme, name, isLight] of /** @type {const} */ ([
      ...nightly(["Light Modern", "graph-light", true]),
      ["Dark High Contrast", "graph-contrast", false],
    ])) {
      await workbench.setTheme(theme);
      await until(
        async () => ({
          background: await panel.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor),
          ...(await drawn()),
        }),
        ({ background, most, darkest, lightest }) =>
          isLight === brightness(background) > 128 &&
          Math.abs(most - brightness(background)) <= 32 &&
          (isLight ? darkest < 120 : lightest > 200),
        `${name}: the background of the theme, and ink that stands out from it`,
      );
      await workbench.screenshot(name);
    }
    await workbench.setTheme("Dark Modern");
  });
});

/** @param {string} color `rgb(…)` */
function brightness(color) {
  const [red = 0, green = 0, blue = 0] = (color.match(/[\d.]+/g) ?? []).map(Number);
  return (red + green + blue) / 3;
}
