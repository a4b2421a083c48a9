/**
 * A pipeline is chosen in the editor, and the tree shows a file's runs of several pipelines; with the packed extension, the
 * real server and real torch. Each step leaves a picture in .screenshots/ for somebody to look at.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { defaultStore, onScreen } from "../screen.mjs";
import { StageViews } from "../stageViews.mjs";
import { ALL } from "../themes.mjs";
import { until } from "../until.mjs";

const RUN_MS = 300_000;
/**
 * Notes of each pipeline but TorchScript that its trial succeeded. A trial compiles something in a new process, and all of
 * them take minutes: one is enough to see the list change. `tests/plain/test_availability.py` is about trials.
 */
const NOTE_TRIALS = `
import sys
from irscope.driver import availability
from irscope.pipelines.registry import pipelines

availability._tried = lambda pipeline, *rest: (availability.Status.AVAILABLE, "", "")
availability._variants = lambda *rest: ()
others = [one for one in pipelines().values() if one.name != "torchscript"]
availability.availability_of(others, sys.executable, sys.argv[1])
`;
const SCRIPT = `\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):
        y = self.first(x)
        return torch.relu(y)


fast = torch.compile(Net().eval())
with torch.no_grad():
    fast(torch.ones(2, 8))
`;

describe("pipelines in the editor", () => {
  const workbench = onScreen({
    name: "pipelines",
    viewport: { width: 1300, height: 800 },
    settings: { "irscope.run.budgetSeconds": 280, "files.autoSave": "off" },
    open: (home) => {
      const folder = path.join(home, "pipelines");
      fs.mkdirSync(folder);
      fs.writeFileSync(path.join(folder, "net.py"), SCRIPT);
      const trials = path.join(path.dirname(defaultStore(home)), "trials.json");
      execFileSync(VENV_PYTHON, ["-c", NOTE_TRIALS, trials], { stdio: "pipe" });
      return folder;
    },
  });
  const views = new StageViews(workbench);
  const rows = () => workbench.page.locator(".quick-input-list .monaco-list-row");

  /** @param {string} name */
  async function select(name) {
    await workbench.command("IRScope: Select Pipeline…");
    await rows().filter({ hasText: name }).first().click({ timeout: RUN_MS });
  }

  it("the list says which pipelines work here and what a missing one needs", async () => {
    await workbench.open("net.py");
    await workbench.command("IRScope: Select Pipeline…");
    // The first one that is tried; the others follow one by one.
    await rows()
      .filter({ hasText: /(?<!aot)inductor · available · selected/ })
      .waitFor({ timeout: RUN_MS });
    await workbench.screenshot("pipelines-list");
    await workbench.page.keyboard.press("Escape");
  });

  it("Analyze This File and Show Stage… take the one that is selected", async () => {
    await select("TorchScript");
    const analyze = workbench.page.locator(".notification-toast a.monaco-button", { hasText: "Analyze This File" });
    await analyze.click();
    await workbench.command("IRScope: Show Stage…");
    await rows().filter({ hasText: "Inlined graph" }).waitFor({ timeout: RUN_MS });
    await workbench.screenshot("pipelines-stages");
    await rows().filter({ hasText: "Another Pipeline…" }).click();
    await rows().filter({ hasText: "torch.export" }).first().click({ timeout: RUN_MS });
    await rows().filter({ hasText: "Exported program after decompositions" }).waitFor({ timeout: RUN_MS });
    await workbench.page.keyboard.press("Escape");
  });

  it("the button of an item opens it to the side: stages of two pipelines have the colours of the same lines", async () => {
    const { page } = workbench;
    /** Show Stage… at the source. @param {string} item @param {boolean} byButton the one that opens it to the side */
    const choose = async (item, byButton) => {
      await page.locator(".tab", { hasText: "net.py" }).click();
      await workbench.command("IRScope: Show Stage…");
      await page.locator(".quick-input-title:visible", { hasText: "Show Stage" }).waitFor({ timeout: RUN_MS });
      await page.locator(".quick-input-widget input").fill(item); // A row that is not on the screen is not there.
      const row = rows().filter({ hasText: item }).first();
      await row.hover();
      await (byButton ? row.locator(".codicon-split-horizontal") : row).click();
    };
    await workbench.command("View: Close All Editors"); // Those of a first try.
    await workbench.open("net.py");
    await choose("Another Pipeline…", false);
    await rows().filter({ hasText: "export ·" }).first().click();
    await rows().filter({ hasText: "Exported program after decompositions" }).click({ timeout: RUN_MS });
    await page.locator(".tab.active", { hasText: "decomposed-program" }).waitFor();
    await choose("Another Pipeline…", true);
    await rows().filter({ hasText: "torchscript ·" }).click();
    await page
      .locator(".quick-input-title:visible", { hasText: "Show Stage to the Side" })
      .waitFor({ timeout: RUN_MS });
    await rows().filter({ hasText: "Inlined graph" }).click();
    await page.locator(".tab.active", { hasText: "torchscript-inlined" }).waitFor();
    await choose("Frozen graph", true);
    await page.locator(".tab.active", { hasText: "torchscript-frozen" }).waitFor();
    const shown = page.locator(".editor-group-container .tab");
    const names = (await shown.allInnerTexts()).map((name) => name.trim().replace(/\s*\..*/s, ""));
    assert.deepEqual(
      names,
      ["net", "decomposed-program", "torchscript-inlined", "torchscript-frozen"],
      "a group for each",
    );
    /** The colours of the two operators. @param {string} tab @param {string} linear */
    const colours = (tab, linear) =>
      Promise.all([linear, "aten.relu"].map(async (text) => (await views.backgrounds(tab, text))[0] ?? ""));
    await until(
      async () => ({
        exported: await colours("decomposed-program", "aten.addmm"),
        inlined: await colours("torchscript-inlined", "aten.linear"),
        frozen: await colours("torchscript-frozen", "aten.linear"),
      }),
      ({ exported, inlined, frozen }) =>
        !exported.includes("") &&
        new Set(exported).size === 2 &&
        inlined.join() === exported.join() &&
        frozen.join() === exported.join(),
      "each line of the script has one colour, in the stages of both pipelines",
    );
    await workbench.screenshot("pipelines-side-by-side");
  });

  it("the tree has one row for the file, with the newest run of each pipeline", async () => {
    await workbench.command("IRScope: Focus on Runs View");
    const tree = workbench.page.locator(".pane-body .monaco-list-row");
    await tree.filter({ hasText: "net.py" }).filter({ hasText: "3 pipelines" }).waitFor();
    for (const name of ["fast run", "torchscript", "export"]) {
      await tree.filter({ has: workbench.page.getByText(name, { exact: true }) }).waitFor();
    }
    await workbench.screenshot("pipelines-tree");
  });

  // The table is in `comparisonPage`, the command's list and its request in tests of the protocol.
  (ALL ? it : () => undefined)("several are compared, and the table opens stages of each", async () => {
    await workbench.open("net.py");
    await workbench.command("IRScope: Compare Pipelines…");
    const box = (/** @type {string} */ name) =>
      rows()
        .filter({ hasText: `${name} ·` })
        .getByRole("checkbox");
    await box("export").waitFor();
    await until(() => box("export").isChecked(), Boolean, "that of the settings is selected");
    await rows().filter({ hasText: "torchscript ·" }).click();
    await until(() => box("torchscript").isChecked(), Boolean, "the second one is selected");
    assert.ok(await box("export").isChecked(), "and so is still the first one");
    await workbench.screenshot("pipelines-compare-list");
    await workbench.page.keyboard.press("Enter");
    const dock = workbench.webview();
    await dock.locator("table.comparison").waitFor({ timeout: RUN_MS });
    assert.deepEqual(await dock.locator("table.comparison thead th").allInnerTexts(), ["export", "torchscript"]);
    await workbench.screenshot("pipelines-compared");
    await dock.getByRole("button", { name: "Exported program", exact: true }).click();
    await workbench.page.locator(".tab", { hasText: "exported-program" }).first().waitFor();
    await workbench.screenshot("pipelines-compared-stage");
  });
});
