/** `irscope view` of a comparison of pipelines: its table, a stage from it, and lines linked across the two runs. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { ROOT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { launchBrowser } from "../browser.mjs";
import { makeHome } from "../home.mjs";
import { openPage, startView } from "../viewPage.mjs";

const SCRIPT = `import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        return torch.tanh(y)


fast = torch.compile(Net())
with torch.no_grad():
    fast(torch.ones(4))
`;

describe("irscope view of compared pipelines", () => {
  /** @type {string} */
  let home;
  /** @type {Record<string, string>} */
  let runs;
  /** @type {import("../viewPage.mjs").View} */
  let view;
  /** @type {import("playwright-core").Browser} */
  let browser;

  before(async () => {
    home = makeHome("irscope", os.tmpdir());
    const store = path.join(home, "runs.db");
    const script = path.join(home, "net.py");
    fs.writeFileSync(script, SCRIPT);
    const command = [
      "-m",
      "irscope",
      "compare",
      script,
      "--pipelines",
      "torchscript,export",
      "--rounds",
      "2",
      "--json",
    ];
    const told = execFileSync(VENV_PYTHON, [...command, "--store", store], { cwd: ROOT, encoding: "utf8" });
    /** @type {{pipelines: {pipeline: string, run: string}[]}} */
    const { pipelines } = JSON.parse(told);
    runs = Object.fromEntries(pipelines.map(({ pipeline, run }) => [pipeline, run]));
    view = await startView(store, home);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    assert.equal(await view?.stop(), 0);
    fs.rmSync(home, { recursive: true, force: true });
  });

  it("shows the table below each run, and lines of one run's file are linked with the stage of the other", async () => {
    const { page, errors } = await openPage(browser, view.url, "dark");
    const go = async (/** @type {string} */ to) => page.goto(`${new URL(view.url).origin}/#${to}`);
    const source = page.locator(".column").first();
    const lineOf = (/** @type {import("playwright-core").Locator} */ column, /** @type {string} */ text) =>
      column.locator(".tabpanel:not([hidden]) .cm-line", { hasText: text }).last();
    await go(`run=${runs["torchscript"]}&file=${path.join(home, "net.py")}`);
    await lineOf(source, "torch.relu").waitFor();
    await go(`run=${runs["torchscript"]}&panel=comparison`);
    const table = page.frameLocator("iframe[src^='/panel/comparison']").locator("table.comparison");
    await table.waitFor();
    assert.deepEqual(await table.locator("thead th").allInnerTexts(), ["torchscript", "export"]);
    await page.screenshot({ path: path.join(SCREENSHOTS, "view-comparison.png") });
    await go(`run=${runs["export"]}&stage=0/0/exported-program`);
    const stage = page.locator(".column").nth(1);
    await lineOf(stage, "aten.relu").waitFor();

    await lineOf(source, "torch.relu").click();
    await stage.locator(".cm-line.counterpart", { hasText: "aten.relu" }).waitFor();
    assert.equal(await stage.locator(".cm-line.counterpart").count(), 1, "of another run, and only this line");
    await lineOf(stage, "aten.tanh").click();
    await source.locator(".tabpanel:not([hidden]) .cm-line.counterpart", { hasText: "torch.tanh" }).waitFor();

    const colour = async (/** @type {import("playwright-core").Locator} */ line) =>
      (await line.getAttribute("class"))?.split(" ").find((name) => /^linked-\d$/.test(name));
    for (const [here, there] of [
      ["torch.relu", "aten.relu"],
      ["torch.tanh", "aten.tanh"],
    ]) {
      const own = await colour(lineOf(source, here ?? ""));
      assert.ok(own !== undefined, here);
      assert.equal(await colour(lineOf(stage, there ?? "")), own, here);
    }
    await page.screenshot({ path: path.join(SCREENSHOTS, "view-linked-runs.png") });
    assert.deepEqual(errors, []);
  });
});
