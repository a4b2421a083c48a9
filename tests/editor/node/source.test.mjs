/**
 * What stands in the source itself: regions, the mark of a kernel in the gutter, inlay hints, hovers; with the packed
 * extension, the real server and real torch. Each step leaves a picture in .screenshots/ for somebody to look at.
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { onScreen } from "../screen.mjs";
import { itNightly, nightly } from "../themes.mjs";
import { until } from "../until.mjs";

const RUN_MS = 300_000;
const SCRIPT = `\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.up(x))
        return x + self.down(hidden)


@torch.compile(dynamic=True)
def step(block, x):
    y = block(x)
    print("half way")
    scores = torch.softmax(y * 0.5, dim=-1)
    return scores.sum(dim=0)


block = Block(16)
with torch.no_grad():
    step(block, torch.randn(8, 16))
`;

const CELLS = [
  "%matplotlib inline\nimport torch",
  "@torch.compile\ndef step(x):\n    y = torch.relu(x) * 2\n    print('half way')\n    return y.softmax(-1)",
  "with torch.no_grad():\n    step(torch.randn(8, 16))",
];

/** A notebook as Jupyter writes it, without outputs. @param {string[]} sources */
function notebookOf(sources) {
  const code = sources.map((source, index) => ({
    cell_type: "code",
    id: `code-${index}`,
    metadata: {},
    execution_count: null,
    outputs: [],
    source,
  }));
  const words = { cell_type: "markdown", id: "words", metadata: {}, source: "# A step, compiled" };
  const kernelspec = { display_name: "Python 3", language: "python", name: "python3" };
  return {
    cells: [words, ...code],
    metadata: { kernelspec, language_info: { name: "python" } },
    nbformat: 4,
    nbformat_minor: 5,
  };
}

describe("around the code", () => {
  /** @type {string} */
  let source;
  const workbench = onScreen({
    name: "source",
    viewport: { width: 1200, height: 760 },
    settings: {
      "irscope.run.budgetSeconds": 280,
      "irscope.run.onSave": "deep",
      "editor.minimap.enabled": false,
      "files.autoSave": "off",
    },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(folder);
      source = path.join(folder, "block.py");
      fs.writeFileSync(source, SCRIPT);
      fs.writeFileSync(path.join(folder, "steps.ipynb"), JSON.stringify(notebookOf(CELLS)));
      return folder;
    },
  });

  /** Whole-line decorations with a bar of a style. @param {string} style */
  const bars = (style) =>
    workbench.page.evaluate(
      (wanted) =>
        [...document.querySelectorAll(".view-overlays .cdr")].filter((each) => {
          const { borderLeftStyle, borderLeftWidth } = getComputedStyle(each);
          return borderLeftStyle === wanted && borderLeftWidth === "2px";
        }).length,
      style,
    );
  const kernelMarks = () =>
    workbench.page.evaluate(
      () =>
        [...document.querySelectorAll(".glyph-margin-widgets .cgmr")].filter((each) =>
          getComputedStyle(each).backgroundImage.includes("kernel-"),
        ).length,
    );

  const barsAre = (/** @type {number} */ count) =>
    until(
      () => bars("solid"),
      (found) => found === count,
      `${count} bars`,
    );

  it("compiled lines have a bar, lines in a kernel a mark in the gutter", async () => {
    await workbench.open("block.py");
    await workbench.page
      .locator(".codelens-decoration a", { hasText: /kernel/ })
      .first()
      .waitFor({ timeout: RUN_MS });
    // 3 lines of Block.forward, 6 of step with its decorator, and the bar of the break over one of these.
    await barsAre(10);
    await until(kernelMarks, (marks) => marks >= 3, "the marks of kernels");
    await workbench.screenshot("source-dark");
  });

  it("inlay hints are off, and one command turns them on", async () => {
    const hints = () => workbench.page.locator(".view-line", { hasText: "f32[" }).count();
    assert.equal(await hints(), 0);
    await workbench.command("IRScope: Toggle Inlay Hints");
    await workbench.page.locator(".view-line", { hasText: "f32[" }).first().waitFor({ timeout: RUN_MS });
    const line = workbench.page.locator(".view-line", { hasText: "hidden" }).first();
    await until(
      async () => (await line.innerText()).replace(/\s/g, " "),
      (text) => /self\.up\(x\)\) *f32\[s\d+, 64\]$/.test(text),
      "the hint of the line",
    );
    await workbench.screenshot("source-hints-dark");
  });

  it("a compiled line tells its operations and kernels", async () => {
    await workbench.goToText(source, "scores = ");
    await workbench.command("Show or Focus Hover");
    const hover = workbench.page.locator(".monaco-hover:not(.hidden)", { hasText: /softmax/ });
    await hover.first().waitFor();
    assert.match(await hover.first().innerText(), /mul → softmax · gives f32\[s\d+, s\d+\]\s+In 1 kernel: cpp_fused/);
    await workbench.screenshot("source-hover");
    await workbench.page.keyboard.press("Escape");
  });

  it("an edit moves the marks, and takes the hints of the edited function away", async () => {
    await workbench.goToText(source, "import torch");
    await workbench.page.keyboard.press("Home");
    await workbench.page.keyboard.type("# one more line");
    await workbench.page.keyboard.press("Enter");
    await workbench.page.waitForTimeout(2_000);
    await barsAre(10);
    await workbench.page.locator(".view-line", { hasText: "hidden" }).filter({ hasText: "f32[" }).first().waitFor();
    await workbench.open("block.py:13");
    await workbench.page.keyboard.press("End");
    await workbench.page.keyboard.type(" * 2");
    const line = workbench.page.locator(".view-line", { hasText: "hidden" }).filter({ hasText: "f32[" });
    await until(
      () => line.count(),
      (count) => count === 0,
      "its hints are gone",
    );
    await workbench.page.locator(".view-line", { hasText: "scores =" }).filter({ hasText: "f32[" }).first().waitFor();
    for (let undo = 0; undo < 4; undo += 1) {
      await workbench.page.keyboard.press("Control+Z");
    }
    await workbench.command("File: Revert File");
  });

  itNightly("marks and hints in another theme", async () => {
    for (const [theme, name] of /** @type {const} */ ([
      ...nightly(["Light Modern", "light"]),
      ["Dark High Contrast", "high-contrast"],
    ])) {
      await workbench.setTheme(theme);
      await workbench.page.locator(".view-line", { hasText: "f32[" }).first().waitFor({ timeout: RUN_MS });
      await workbench.page.waitForTimeout(1_500);
      await barsAre(10);
      await workbench.screenshot(`source-hints-${name}`);
    }
  });

  itNightly("a cell of a notebook has its findings, marks and kernels", async () => {
    const { page } = workbench;
    await workbench.command("View: Close All Editors");
    await workbench.setTheme("Dark Modern");
    await workbench.open("steps.ipynb");
    await page.locator(".notebookOverlay .squiggly-warning").first().waitFor({ timeout: RUN_MS });
    await page
      .locator(".notebookOverlay .codelens-decoration a", { hasText: /1 break · .*kernel/ })
      .first()
      .waitFor({ timeout: RUN_MS });
    const cell = page.locator(".notebookOverlay .cell .monaco-editor", { hasText: "half way" });
    await cell.locator(".view-line", { hasText: "f32[8, 16]" }).first().waitFor({ timeout: RUN_MS });
    await until(
      () => bars("solid"),
      (count) => count >= 5,
      "the compiled lines of the cell",
    );
    await page.locator(".notebook-toolbar-container [aria-label^='Analyze This Notebook']").waitFor();
    await page.locator(".statusbar-item", { hasText: "IRScope" }).waitFor();
    await workbench.screenshot("notebook-dark");
    await workbench.setTheme("Light Modern");
    await page.waitForTimeout(1_500);
    await workbench.screenshot("notebook-light");
    await cell.locator(".view-line", { hasText: "softmax" }).first().click();
    await workbench.command("IRScope: Show Generated Kernel");
    await page.locator(".tab", { hasText: /\.cpp/ }).first().waitFor({ timeout: RUN_MS });
    await page.waitForTimeout(1_000);
    await workbench.screenshot("notebook-kernel");
  });
});
