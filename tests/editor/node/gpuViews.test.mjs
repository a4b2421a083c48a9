/**
 * From a line of the source down to machine code of a GPU: the graph, the Triton kernel, its IRs, PTX and SASS side by
 * side, of a run that was captured on an H100 (`h100_run.json`); in three themes.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { onScreen } from "../screen.mjs";
import { StageViews } from "../stageViews.mjs";
import { nightly } from "../themes.mjs";
import { until } from "../until.mjs";

/** What is chosen in the list, the tab, and what stands there of `return y.exp() + x`. */
const STAGES = /** @type {const} */ ([
  ["Post-grad graph", "post-grad-graph.py", /aten\.exp\.default/],
  ["Kernel", "triton_per_fused", /libdevice\.exp\(tmp20\)/],
  ["Triton IR", "ttir.mlir", /%tmp21 = tt\.extern_elementwise %tmp20/],
  ...nightly(
    ["Triton GPU IR", "ttgir.mlir", /%tmp21 = tt\.extern_elementwise %tmp20/],
    ["LLVM IR", "llir.ll", /__nvvm_reflect/],
  ),
  ["PTX", "ptx.ptx", /fma\.rn\.ftz\.f32/],
  ["SASS", "sass.sass", /FFMA|MOV/],
]);
/** With a register that is made above as its last operand. */
const INSTRUCTION = /^fma\.rn\.ftz\.f32\s.*%\w+;/;
const LINE = "return y.exp() + x";

describe("the views of a GPU's kernel on the screen", () => {
  const workbench = onScreen({
    name: "gpu",
    viewport: { width: 3300, height: 900 },
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
      const store = path.join(home, "runs.db");
      execFileSync(VENV_PYTHON, [path.join(ROOT, "tests", "editor", "h100_store.py"), store, folder]);
      fs.writeFileSync(path.join(folder, ".vscode", "settings.json"), JSON.stringify({ "irscope.storePath": store }));
      return folder;
    },
  });
  const views = new StageViews(workbench);

  before(async () => {
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await workbench.open("block.py");
    for (const [title, tab] of STAGES) {
      await views.open(title, tab);
    }
    await workbench.command("View: Reset Editor Group Sizes");
  });

  it("the cursor in the source reveals and lights its counterparts all the way down, in its colour", async () => {
    await workbench.page.keyboard.press("Control+1");
    await workbench.page.mouse.move(5, 890); // No tooltip over what is looked at.
    await workbench.goToText(path.join(workbench.home, "work", "block.py"), LINE);
    for (const [, tab, expected] of STAGES) {
      await until(
        () => views.marked(tab),
        (lines) => lines.some((line) => expected.test(line)),
        `a mark in ${tab}`,
      );
    }
    await workbench.screenshot("gpu-dark");
  });

  it("lines that belong together have one colour in all of them, in every theme", async () => {
    /** @type {Set<string>} */
    const seen = new Set();
    for (const [theme, name] of /** @type {const} */ ([
      ["Dark Modern", "gpu-dark"],
      ["Light Modern", "gpu-light"],
      ...nightly(["Dark High Contrast", "gpu-high-contrast"]),
    ])) {
      await workbench.setTheme(theme);
      const { own } = await until(
        async () => ({
          own: (await views.backgrounds("block.py", LINE))[0] ?? "",
          other: (await views.backgrounds("block.py", "torch.tanh(y * scale)"))[0] ?? "",
        }),
        ({ own, other }) => own !== "" && own !== other && !seen.has(own),
        `${theme}: neighbours have different colours, and those of this theme`,
      );
      for (const [, tab, expected] of STAGES) {
        await until(
          async () => {
            const [line = ""] = (await views.marked(tab)).filter((each) => expected.test(each));
            return line === "" ? [] : views.backgrounds(tab, line);
          },
          (found) => found.some((each) => each.includes(own.split(" ")[0] ?? "?")),
          `${theme}, ${tab}: the colour ${own}`,
        );
      }
      seen.add(own);
      await workbench.screenshot(name);
    }
    assert.ok(seen.size > 1, "the colours are the themes'");
    await workbench.setTheme("Dark Modern");
  });

  it("the cursor in PTX lights the source, the kernel and SASS", async () => {
    const line = (await views.markedLines("ptx.ptx")).find(({ text }) => INSTRUCTION.test(text));
    const token = line?.tokens.find(({ text }) => text.includes("%"));
    assert.ok(line && token, "the instruction that the next tests are about is on the screen");
    await workbench.page.mouse.click(token.x, token.y);
    await until(
      async () => ({
        source: await views.marked("block.py"),
        kernel: (await views.marked("triton_per_fused")).join("\n"),
        sass: await views.marked("sass.sass"),
      }),
      ({ source, kernel, sass }) => source.join() === LINE && /libdevice\.exp|tmp21/.test(kernel) && sass.length > 0,
      "marks of the line, in the kernel and in SASS",
    );
    await workbench.screenshot("gpu-cursor-in-ptx");
  });

  it("a hover in PTX says where it came from, and a register leads to where it is made", async () => {
    const { page } = workbench;
    await workbench.command("Show or Focus Hover");
    const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "block.py:10" });
    await hover.first().waitFor({ timeout: 20_000 });
    assert.match(await hover.first().innerText(), /y\.exp\(\) \+ x[^]*triton_per_fused/);
    await page.waitForTimeout(400);
    await workbench.screenshot("gpu-hover");
    await page.keyboard.press("Escape");
    const before = await workbench.cursorLine();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft"); // Into its last operand.
    await workbench.command("Go to Definition");
    await until(
      () => workbench.cursorLine(),
      (line) => line < before,
      "it was made above",
    );
    await workbench.screenshot("gpu-definition");
  });
});
