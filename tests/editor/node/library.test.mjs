/**
 * A model of transformers under torch.compile: from the call to its kernels while the run goes on, to a line of the
 * library, and back; with the packed extension, the real server and real torch. Pictures are in .screenshots/.
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { onScreen } from "../screen.mjs";
import { until } from "../until.mjs";

const RUN_MS = 500_000;
const SCRIPT = `\
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1
)
model = LlamaForCausalLM(config).train()
compiled = torch.compile(model)
tokens = torch.randint(0, 64, (2, 16))
out = compiled(input_ids=tokens, labels=tokens)
out.loss.backward()
`;

describe("a library's model", () => {
  /** @type {string} */
  let source;
  const workbench = onScreen({
    name: "library",
    viewport: { width: 1340, height: 820 },
    settings: { "irscope.run.budgetSeconds": 480, "irscope.run.onSave": "off", "editor.minimap.enabled": false },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(folder);
      source = path.join(folder, "train.py");
      fs.writeFileSync(source, SCRIPT);
      return folder;
    },
  });
  const rows = () => workbench.page.locator(".quick-input-list .monaco-list-row");
  const active = (/** @type {RegExp} */ name) => workbench.page.locator(".tab.active", { hasText: name }).first();

  /** The kernels of a line of the script. @param {string} text */
  const kernelsOf = async (text) => {
    await workbench.goToText(source, text);
    await workbench.command("IRScope: Show Generated Kernel");
    const title = workbench.page.locator(".quick-input-title:visible", { hasText: "LlamaForCausalLM" });
    await title.waitFor({ timeout: RUN_MS });
    await rows().first().waitFor();
  };

  it("the call lists its kernels by module while the run goes on, with the lines of the library", async () => {
    await kernelsOf("out = compiled(");
    const list = workbench.page.locator(".quick-input-list");
    assert.match(await list.innerText(), /modeling_llama\.py:\d+/);
    await workbench.screenshot("library-list");
    await workbench.page.keyboard.press("Enter");
    await workbench.page.locator(".tab", { hasText: /^cpp_fused/ }).waitFor();
  });

  it("from a kernel to the library's line, and back", async () => {
    await workbench.page.locator(".tab", { hasText: /^cpp_fused/ }).click();
    await workbench.command("IRScope: Go to the Library's Line");
    await rows()
      .first()
      .waitFor({ timeout: 5_000 })
      .catch(() => undefined); // One line opens at once.
    if (await rows().first().isVisible()) {
      await workbench.page.keyboard.press("Enter");
    }
    await active(/\.py/).waitFor();
    const tab = await workbench.page.locator(".tab.active.selected, .tab.active").allInnerTexts();
    assert.ok(
      tab.some((name) => !name.includes("train.py") && name.includes(".py")),
      tab.join(),
    );
    await workbench.screenshot("library-line");
    await workbench.command("Go Back");
    await active(/^cpp_fused/).waitFor();
  });

  it("the backward has its own kernels, and the lens at torch.compile the model's name", async () => {
    const status = workbench.page.locator(".statusbar-item", { hasText: "IRScope" }).first();
    await until(
      () => status.innerText(),
      (text) => !/kernel|running|forward|backward|ending/.test(text),
      "the end of the run",
      RUN_MS,
    );
    await kernelsOf("out.loss.backward()");
    assert.match(await workbench.page.locator(".quick-input-list").innerText(), /backward/);
    await workbench.page.keyboard.press("Escape");
    const lens = workbench.page.locator(".codelens-decoration a", {
      hasText: /^LlamaForCausalLM · 1 graph · \d+ kernels/,
    });
    await lens.first().waitFor();
    await workbench.screenshot("library-lens");
  });
});
