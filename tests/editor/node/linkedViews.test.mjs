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
import { StageViews } from "../stageViews.mjs";
import { until } from "../until.mjs";

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
from irscope.store.store import Store
with Store(sys.argv[1]) as store:
    report = store.report(store.runs(1)[0].run)
    kernel = next(kernel for kernel in report.kernels if kernel.language == "cpp")
    lowering.make(store, report, f"{kernel.stage}/assembly", sys.executable)
`;

describe("linked views on the screen", () => {
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

  const views = new StageViews(workbench);

  before(async () => {
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await workbench.open("block.py");
  });

  it("source, graph, output code, kernel and assembly in a row share their colours", async () => {
    await views.open("Post-grad graph", "post-grad-graph.py");
    await views.open("Output code", "output-code.py");
    await views.open("Kernel", "cpp_fused");
    await views.open("Assembly", "assembly.s");
    await until(
      async () => ({
        source: (await views.backgrounds("block.py", "return y.exp() + x"))[0] ?? "",
        graph: await views.backgrounds("post-grad-graph.py", "aten.exp.default"),
      }),
      ({ source, graph }) => /^rgba?\(/.test(source) && graph.includes(source),
      "the line of the source has a colour, and the graph's the same",
    );
    await workbench.screenshot("linked-dark");
  });

  it("the cursor in the source lights up its counterparts, in every theme", async () => {
    const line = SCRIPT.split("\n").findIndex((row) => row.includes("y.exp()")) + 1;
    await workbench.page.keyboard.press("Control+1");
    await workbench.open(`block.py:${line}`);
    const { marked } = await until(
      async () => ({
        plain: (await views.backgrounds("block.py", "return y.exp() + x"))[0] ?? "",
        marked: (await views.backgrounds("post-grad-graph.py", "aten.exp.default"))[0] ?? "",
        kernel: await views.backgrounds("cpp_fused", ".exp()"),
      }),
      ({ plain, marked, kernel }) =>
        plain !== "" &&
        marked !== plain &&
        marked.includes(plain.split(" ")[0] ?? "?") &&
        kernel.length > 0 &&
        kernel.every((each) => each === marked),
      "the mark lies over the colour, and the kernel's line is revealed and has the same colours",
    );
    const code = views.group("output-code.py").locator(".view-line", { hasText: ".exp()" });
    const kindsIn = (/** @type {import("playwright-core").Locator} */ line) =>
      line.evaluate(
        (element) => new Set([...element.querySelectorAll("span[class^=mtk]")].map((each) => each.className)).size,
      );
    await until(
      () => kindsIn(code.first()),
      (kinds) => kinds > 2,
      "the kernel in the output code is highlighted as what it is, not as a string",
    );
    const after = views.group("output-code.py").locator(".view-line", { hasText: "class Runner" }).first();
    const styles = await kindsIn(after);
    assert.ok(styles > 1, "what follows the kernel is Python again");
    await workbench.screenshot("linked-cursor-dark");
    for (const [theme, name] of /** @type {const} */ ([
      ["Light Modern", "linked-light"],
      ["Dark High Contrast", "linked-high-contrast"],
    ])) {
      await workbench.setTheme(theme);
      await until(
        () => views.backgrounds("post-grad-graph.py", "aten.exp.default"),
        ([other = ""]) => other !== "" && other !== marked,
        "the colours are the theme's",
      );
      await workbench.page.waitForTimeout(500); // The rest of the window fades.
      await workbench.screenshot(name);
    }
    await workbench.setTheme("Dark Modern");
  });

  it("a hover on a node tells its shape, its bytes and where it came from", async () => {
    await workbench.page.keyboard.press("Control+2");
    await views.group("post-grad-graph.py").locator(".view-line", { hasText: "aten.exp.default" }).first().click();
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
