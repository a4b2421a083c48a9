/** In a file that does not use torch nothing of the extension is shown; with the real server. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { onScreen } from "../screen.mjs";
import { until } from "../until.mjs";

const PLAIN = `def f(x):
    return x + 1


print(f(2))  # compile
`;
const WITH_TORCH = `import torch

print(torch.ones(2))
`;

describe("a file that does not use torch", () => {
  const workbench = onScreen({
    name: "plain-file",
    viewport: { width: 1200, height: 800 },
    settings: { "irscope.run.onSave": "fast", "irscope.inlayHints.enabled": true, "files.autoSave": "off" },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(folder);
      fs.writeFileSync(path.join(folder, "plain.py"), PLAIN);
      fs.writeFileSync(path.join(folder, "torchy.py"), WITH_TORCH);
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

  it("shows nothing of it, also when it is saved", async () => {
    await workbench.open("plain.py");
    await workbench.page.waitForTimeout(4_000);
    await workbench.page.keyboard.press("Control+End");
    await workbench.page.keyboard.type("# edited");
    await workbench.command("File: Save");
    await workbench.page.waitForTimeout(4_000);
    assert.deepEqual(await shown(), []);
    assert.deepEqual(await menu(), []);
    await workbench.screenshot("plain-file");
  });

  it("and another file beside it shows what there is", async () => {
    await workbench.open("torchy.py");
    await workbench.page.locator(".statusbar-item[id*='irscope']:visible").waitFor({ timeout: 60_000 });
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
});
