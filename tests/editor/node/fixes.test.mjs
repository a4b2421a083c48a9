/** A fix that was proven, from the menu to the file, in a VS Code with the real server; only `npm run test:all` runs it. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { onScreen } from "../screen.mjs";
import { nightly } from "../themes.mjs";
import { until } from "../until.mjs";

const RUN_MS = 300_000;
const SCRIPT = `import torch


@torch.compile
def f(x):
    x = x * x.max().item()
    if x.sum() > 0:
        x = x + 1
    return x


f(torch.randn(4))
`;
const FILES = ["first.py", "second.py"];

nightly("fixes that are proven").forEach((title) =>
  describe(title, () => {
    /** @type {string} */
    let folder;
    const workbench = onScreen({
      name: "fixes",
      viewport: { width: 1340, height: 800 },
      settings: { "irscope.run.budgetSeconds": 280, "irscope.fixes.trySeconds": 100, "editor.minimap.enabled": false },
      open: (home) => {
        folder = path.join(home, "work");
        fs.mkdirSync(folder);
        for (const name of FILES) {
          fs.writeFileSync(path.join(folder, name), SCRIPT);
        }
        return folder;
      },
    });
    const rows = () => workbench.page.locator(".action-widget .monaco-list-row.action"); // without headings

    it("stand in the menu, and all of the workspace are one edit that is reviewed", async () => {
      const { page } = workbench;
      for (const name of FILES) {
        await workbench.goToText(path.join(folder, name), ".item()");
        await page.locator(".squiggly-warning").first().waitFor({ timeout: RUN_MS });
      }
      const titles = await until(
        async () => {
          await page.keyboard.press("Escape");
          await workbench.goToText(path.join(folder, "second.py"), ".item()");
          await page.keyboard.press("Control+.");
          await rows().first().waitFor();
          return rows().allInnerTexts();
        },
        (found) => found.some((title) => title.includes("in the workspace (4 verified)")),
        "what is proven in the workspace",
        RUN_MS,
      );
      assert.match(titles[0] ?? "", /^Verified: Keep it a tensor \(GB0124: 1 break fewer, .*same outputs\)$/);
      await workbench.screenshot("fixes-menu");

      await rows().filter({ hasText: "in the workspace" }).click();
      const preview = page.locator(".refactor-preview, .bulk-edit-panel");
      await preview.locator(".monaco-list-row", { hasText: "first.py" }).first().waitFor();
      await workbench.screenshot("fixes-preview");
      await page.locator(".monaco-button", { hasText: "Apply" }).first().click();
      for (const name of FILES) {
        const file = path.join(folder, name);
        const is = (/** @type {string} */ text) => !text.includes(".item()") && text.includes("torch.where(");
        await until(async () => fs.readFileSync(file, "utf8"), is, `${name} is repaired`);
      }
      await page.locator(".statusbar-item", { hasText: "2 breaks fixed" }).first().waitFor({ timeout: RUN_MS });
    });
  }),
);
