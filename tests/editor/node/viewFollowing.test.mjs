/** The page of `irscope view` while its script is run again and again. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { makeHome } from "../home.mjs";
import { openPage, startView } from "../viewPage.mjs";

describe("irscope view, following a script", () => {
  it("shows the newer run in place of the older one, with what changed, until that is turned off", async () => {
    const home = makeHome("following");
    const [store, script] = [path.join(home, "runs.db"), path.join(home, "train.py")];
    fs.writeFileSync(script, "import torch\n\n@torch.compile\ndef model(x):\n    return torch.relu(x)\n");
    /** @param {number} breaks @returns {string} the run's id */
    const run = (breaks) => {
      const args = [path.join(ROOT, "tests", "editor", "add_run.py"), store, script, String(breaks)];
      return execFileSync(VENV_PYTHON, args, { encoding: "utf8" }).trim();
    };
    const first = run(3);
    const view = await startView(store, home);
    const browser = await launchBrowser();
    try {
      const { page, errors } = await openPage(browser, `${view.url}&panel=findings`, "dark");
      const panel = page.frameLocator("iframe[src^='/panel/findings']");
      await panel.getByText("3×").waitFor();
      await page.goto(`${new URL(view.url).origin}/#stage=0/0/dynamo-graph`);
      await page.locator(".cm-line", { hasText: "with 3 breaks" }).waitFor();
      await page.goto(`${new URL(view.url).origin}/#run=${first}&panel=memory`); // Behind it, in the same column.
      await page.frameLocator("iframe[src^='/panel/memory']").getByText("No memory plan").first().waitFor();
      await page.locator(`.row.selected[data-id="${first}"]`).waitFor(); // The run's: it has no row of its own.
      await page.locator("[role=tab]", { hasText: /dynamo graph/i }).click();
      const second = run(1);
      await page.locator(".cm-line", { hasText: "with 1 breaks" }).waitFor();
      await page.getByText(/train\.py ran again at .*: 2 findings fixed/).waitFor();
      assert.match(page.url(), new RegExp(`run=${second}&stage=0/0/dynamo-graph`));
      assert.equal(await page.locator(`iframe[src*='${first}']`).count(), 0, "also what is not in front");
      assert.equal(await page.locator(`iframe[src^='/panel/findings'][src*='${second}']`).count(), 1);
      assert.equal(await page.locator(`iframe[src^='/panel/memory'][src*='${second}']`).count(), 1);
      await page.screenshot({ path: path.join(SCREENSHOTS, "view-following.png") });
      assert.deepEqual(await violations(page), []);
      await see(page, "hidden");
      run(4);
      await page.waitForTimeout(1_500);
      assert.equal(await page.locator(".cm-line", { hasText: "with 1 breaks" }).count(), 1, "it does not listen");
      await see(page, "visible");
      await page.locator(".cm-line", { hasText: "with 4 breaks" }).waitFor();
      const toggle = page.getByRole("button", { name: "Follow new runs" });
      await toggle.press("Enter");
      assert.equal(await toggle.getAttribute("aria-pressed"), "false");
      run(2);
      await page.locator(".row", { hasText: "2 findings" }).first().waitFor();
      await page.waitForTimeout(500);
      assert.equal(await page.locator(".cm-line", { hasText: "with 4 breaks" }).count(), 1, "what is shown stays");
      await toggle.press("Enter");
      await page.locator(".cm-line", { hasText: "with 2 breaks" }).waitFor();
      await page.locator(".cm-line", { hasText: "with 4 breaks" }).waitFor({ state: "detached" });
      await page.goto(`${new URL(view.url).origin}/#run=${first}&stage=0/0/dynamo-graph`);
      await page.locator(".cm-line", { hasText: "with 3 breaks" }).waitFor();
      await page.locator(".document:visible > .age", { hasText: /^Older run: deep, .*\. Newest: deep, / }).waitFor();
      await page.screenshot({ path: path.join(SCREENSHOTS, "view-older-text.png") });
      const old = page.frameLocator(`iframe[src^='/panel/findings'][src*='${first}']`);
      await page.goto(`${new URL(view.url).origin}/#run=${first}&panel=findings`);
      await old.locator(".age", { hasText: /^Older run: deep, / }).waitFor();
      await page.screenshot({ path: path.join(SCREENSHOTS, "view-older-findings.png") });
      await page.goto(`${new URL(view.url).origin}/#run=${first}&stage=0/0/dynamo-graph`);
      run(5);
      await page.locator(".row", { hasText: "5 findings" }).first().waitFor();
      await page.waitForTimeout(500);
      assert.equal(await page.locator(".cm-line", { hasText: "with 3 breaks" }).count(), 1, "opened on purpose");
      assert.deepEqual(errors, []);
    } finally {
      await browser.close();
      await view.stop();
      fs.rmSync(home, { recursive: true, force: true });
    }
  });
});

/** Another tab of the browser is in front, or this one again. @param {import("playwright-core").Page} page @param {"hidden" | "visible"} state */
async function see(page, state) {
  await page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}
