/**
 * A line of the source, its graph, its output code, its kernel and its assembly side by side, in colours that say what
 * belongs together: with the packed extension, the real server and a stored run, in three themes.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { onScreen } from "../screen.mjs";

const SCRIPT = `import torch


@torch.compile
def block(x, scale):
    mean = x.mean(-1, keepdim=True)
    spread = (x - mean).pow(2).mean(-1, keepdim=True)
    y = (x - mean) * torch.rsqrt(spread + 1e-5)
    y = torch.tanh(y * scale)
    return y.exp() + x


print(block(torch.randn(64, 32), torch.randn(32)).shape)
`;
const MAKE_ASSEMBLY = `
import sys
from irscope import lowering
from irscope.store import Store
with Store(sys.argv[1]) as store:
    report = store.report(store.runs(1)[0].run)
    kernel = next(kernel for kernel in report.kernels if kernel.language == "cpp")
    lowering.make(store, report, f"{kernel.stage}/assembly", sys.executable)
`;
const PATIENCE_MS = 60_000;

describe("linked views on the screen", function () {
  this.timeout(240_000);
  const workbench = onScreen({
    name: "linked",
    viewport: { width: 2300, height: 900 },
    settings: {
      "irscope.run.onSave": "off",
      "workbench.activityBar.location": "hidden",
      "workbench.sideBar.location": "right",
      "editor.minimap.enabled": false,
      "editor.fontSize": 12,
    },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(path.join(folder, ".vscode"), { recursive: true });
      const script = path.join(folder, "block.py");
      fs.writeFileSync(script, SCRIPT);
      const store = path.join(home, "runs.db");
      execFileSync(VENV_PYTHON, ["-m", "irscope", "run", "--store", store, script], { stdio: "pipe" });
      execFileSync(VENV_PYTHON, ["-c", MAKE_ASSEMBLY, store], { stdio: "pipe" });
      fs.writeFileSync(path.join(folder, ".vscode", "settings.json"), JSON.stringify({ "irscope.storePath": store }));
      return folder;
    },
  });

  before(async () => {
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await workbench.open("block.py");
  });

  /** Opens a stage beside what is active. @param {string} filter @param {string} tab */
  async function openStage(filter, tab) {
    await workbench.command("IRScope: Show Stage…");
    await workbench.page
      .locator(".quick-input-title:visible", { hasText: "Show Stage" })
      .waitFor({ timeout: PATIENCE_MS });
    await workbench.page.locator(".quick-input-widget input").fill(filter);
    await workbench.page.locator(".quick-input-list .monaco-list-row", { hasText: filter }).first().waitFor();
    await workbench.page.keyboard.press("Enter");
    await workbench.page.locator(".tab.active", { hasText: tab }).waitFor({ timeout: PATIENCE_MS });
  }

  /** The group of editors with a tab. @param {string} tab */
  const group = (tab) =>
    workbench.page.locator(".editor-group-container").filter({ has: workbench.page.locator(".tab", { hasText: tab }) });

  /**
   * The background of each visible line of an editor that has a text, as computed; of the topmost decoration.
   * @param {string} tab @param {string} text @returns {Promise<string[]>}
   */
  async function backgrounds(tab, text) {
    return group(tab)
      .first()
      .evaluate((element, wanted) => {
        const lines = [...element.querySelectorAll(".view-line")].filter((line) =>
          (line.textContent ?? "").replace(/\u00a0/g, " ").includes(wanted),
        );
        return lines.map((line) => {
          const { top } = line.getBoundingClientRect();
          const under = [...element.querySelectorAll(".view-overlays .cdr")].filter(
            (each) => Math.abs(each.getBoundingClientRect().top - top) < 2,
          );
          const colours = under.map((each) => getComputedStyle(each).backgroundColor);
          return colours.filter((colour) => colour !== "rgba(0, 0, 0, 0)").join(" ");
        });
      }, text);
  }

  it("source, graph, output code, kernel and assembly in a row share their colours", async () => {
    await openStage("Post-grad graph", "post-grad-graph.py");
    await openStage("Output code", "output-code.py");
    await openStage("Kernel", "cpp_fused");
    await openStage("Assembly", "assembly.s");
    await workbench.page.waitForTimeout(1500);
    const [source] = await backgrounds("block.py", "return y.exp() + x");
    assert.match(source ?? "", /^rgba?\(/, "the line of the source has a colour");
    assert.ok((await backgrounds("post-grad-graph.py", "aten.exp.default")).some((each) => each === source));
    await workbench.screenshot("linked-dark");
  });

  it("the cursor in the source lights up its counterparts, in every theme", async () => {
    const line = SCRIPT.split("\n").findIndex((row) => row.includes("y.exp()")) + 1;
    await workbench.page.keyboard.press("Control+1");
    await workbench.open(`block.py:${line}`);
    await workbench.page.waitForTimeout(1500);
    const [plain = ""] = await backgrounds("block.py", "return y.exp() + x");
    const [marked = ""] = await backgrounds("post-grad-graph.py", "aten.exp.default");
    assert.notEqual(marked, plain, "the mark lies over the colour");
    assert.ok(marked.includes(plain.split(" ")[0] ?? "?"), `${marked} holds ${plain}`);
    const kernel = await backgrounds("cpp_fused", ".exp()");
    assert.ok(
      kernel.length > 0 && kernel.every((each) => each === marked),
      "the kernel's line was revealed and has the same colours",
    );
    const code = group("output-code.py").first().locator(".view-line", { hasText: ".exp()" });
    const kinds = await code
      .first()
      .evaluate(
        (element) => new Set([...element.querySelectorAll("span[class^=mtk]")].map((each) => each.className)).size,
      );
    assert.ok(kinds > 2, "the kernel in the output code is highlighted as what it is, not as a string");
    const after = group("output-code.py").first().locator(".view-line", { hasText: "class Runner" }).first();
    const styles = await after.evaluate(
      (element) => new Set([...element.querySelectorAll("span[class^=mtk]")].map((each) => each.className)).size,
    );
    assert.ok(styles > 1, "what follows the kernel is Python again");
    await workbench.screenshot("linked-cursor-dark");
    for (const [theme, name] of /** @type {const} */ ([
      ["Light Modern", "linked-light"],
      ["Dark High Contrast", "linked-high-contrast"],
    ])) {
      await workbench.setTheme(theme);
      await workbench.page.waitForTimeout(1500);
      const [other = ""] = await backgrounds("post-grad-graph.py", "aten.exp.default");
      assert.notEqual(other, marked, "the colours are the theme's");
      await workbench.screenshot(name);
    }
    await workbench.setTheme("Dark Modern");
  });

  it("a hover on a node tells its shape, its bytes and where it came from", async () => {
    await workbench.page.keyboard.press("Control+2");
    await group("post-grad-graph.py").first().locator(".view-line", { hasText: "aten.exp.default" }).first().click();
    await workbench.page.keyboard.press("Home");
    await workbench.command("Show or Focus Hover");
    const hover = workbench.page.locator(".monaco-hover:not(.hidden)", { hasText: /bytes/ });
    await hover.first().waitFor();
    assert.match(await hover.first().innerText(), /\[64, 32\][^]*8,192 bytes[^]*block\.py:10 /);
    await workbench.page.waitForTimeout(400);
    await workbench.screenshot("linked-hover");
    await workbench.page.keyboard.press("Escape");
  });
});
