/**
 * The way of docs/tutorial.md in a VS Code: the edits are those of the page, and the pictures become the page's
 * (`scripts/pictures.mjs`).
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";
import { onScreen } from "../screen.mjs";
import { until } from "../until.mjs";

const PAGE = fs.readFileSync(path.join(ROOT, "docs", "tutorial.md"), "utf8");
const RUN_MS = 300_000;

/** What each edit of the page replaces, and by what. */
const EDITS = [...PAGE.matchAll(/^```diff\n(.*?)^```$/gms)].map(([, text = ""]) => {
  const lines = text.replace(/\n$/, "").split("\n");
  const side = (/** @type {string} */ sign) =>
    lines
      .filter((line) => line[0] !== sign)
      .map((line) => `${line.slice(1)}\n`)
      .join("");
  return { before: side("+"), after: side("-") };
});

describe("the tutorial", () => {
  /** @type {string} */
  let source;
  const workbench = onScreen({
    name: "tutorial",
    viewport: { width: 1200, height: 760 },
    settings: {
      "irscope.run.budgetSeconds": 280,
      "editor.minimap.enabled": false,
      "editor.autoIndent": "none", // What is typed is the whole text, as it is to be.
      "files.autoSave": "off",
    },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(folder);
      source = path.join(folder, "train.py");
      fs.copyFileSync(path.join(ROOT, "examples", "gpt_training.py"), source);
      return folder;
    },
  });

  const problems = () => workbench.page.locator(".markers-panel .monaco-list-row", { hasText: "irscope" });

  /** Makes edits of the page, and saves. @param {number[]} numbers */
  async function edit(...numbers) {
    let text = fs.readFileSync(source, "utf8");
    for (const number of numbers) {
      const { before, after } = EDITS[number] ?? assert.fail(`the page has no edit ${number}`);
      assert.ok(text.includes(before) || text.includes(after), `the lines of edit ${number} are in the script`);
      text = text.includes(after) ? text : text.replace(before, () => after);
    }
    const { page } = workbench;
    await page.locator(".editor-group-container .view-lines").first().click();
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText(text);
    await page.keyboard.press("Control+Shift+End"); // The editor may have closed the quotes of the first line.
    await page.keyboard.press("Delete");
    await page.keyboard.press("Control+S");
    await until(
      async () => fs.readFileSync(source, "utf8"),
      (saved) => saved === text,
      "the edit is saved",
    );
  }

  /** The messages in Problems, once they fit. @param {RegExp[]} wanted */
  async function problemsAre(wanted) {
    await until(
      () => problems().allInnerTexts(),
      (texts) => texts.length === wanted.length && wanted.every((each) => texts.some((text) => each.test(text))),
      `problems: ${wanted.map(String).join(", ")}`,
      RUN_MS,
    );
  }

  it("a slow step has a graph break and a recompilation", async () => {
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await workbench.goToText(source, "loss > 5");
    await workbench.page.locator(".squiggly-warning").first().waitFor({ timeout: RUN_MS });
    await workbench.command("Problems: Focus on Problems View");
    await problemsAre([/Graph break/, /compiled again/]);
    await workbench.page
      .locator(".codelens-decoration a", { hasText: /1 break/ })
      .first()
      .waitFor({ timeout: RUN_MS });
    await workbench.page.waitForTimeout(1_000);
    await workbench.screenshot("tutorial-break");
  });

  it("without the branch the break is gone", async () => {
    await edit(0, 1);
    await problemsAre([/compiled again/]);
    await workbench.page.locator(".statusbar-item", { hasText: "1 break fixed" }).first().waitFor({ timeout: RUN_MS });
    await workbench.goToText(source, "def loss(");
    await workbench.page.waitForTimeout(1_000);
    await workbench.screenshot("tutorial-recompilation");
  });

  it("with a dynamic length nothing is compiled again", async () => {
    await edit(2);
    await problemsAre([]);
  });

  it("the kernel of a line is beside it", async () => {
    await workbench.command("View: Toggle Panel Visibility");
    await workbench.goToText(source, "future = ");
    await workbench.command("IRScope: Show Generated Kernel");
    await workbench.page
      .locator(".tab", { hasText: /\.cpp|cpp_fused/ })
      .first()
      .waitFor({ timeout: RUN_MS });
    await workbench.page.mouse.move(300, 650); // A tooltip would be in the picture.
    await workbench.page.waitForTimeout(1_500);
    await workbench.screenshot("tutorial-kernel");
  });

  it("why it is a kernel by itself is in the hover", async () => {
    await workbench.command("View: Close All Editors");
    await workbench.goToText(source, "future = ");
    await workbench.page.keyboard.press("Home"); // To the first letter: the finding is at the statement.
    await workbench.command("Show or Focus Hover");
    const hover = workbench.page.locator(".monaco-hover:not(.hidden)", { hasText: /Not fused/ });
    await hover.first().waitFor();
    await workbench.page.waitForTimeout(600);
    await workbench.screenshot("tutorial-fusion");
  });
});
