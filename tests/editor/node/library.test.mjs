/**
 * Models of libraries under torch.compile, alone and inside a module of the user's: from the call to its kernels while
 * the run goes on, to a line of the library, and back; with the packed extension, the real server and real torch.
 * Pictures are in .screenshots/.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { onScreen } from "../screen.mjs";
import { until } from "../until.mjs";

const RUN_MS = 580_000;
const PYTHON_VARIABLE = "IRSCOPE_TEST_LIBRARIES_PYTHON";
/** The interpreter with the libraries. */
const PYTHON = process.env[PYTHON_VARIABLE] || VENV_PYTHON;

/**
 * @typedef {object} Walk
 * @property {string} library what the interpreter needs
 * @property {string} model as the user names it: the class that was compiled
 * @property {string} call the line of the script that calls it
 * @property {string} backward the line that runs the backward
 * @property {RegExp} heading one of those in the list: the end of a module's path, layers that repeat as one
 * @property {RegExp} file of the library
 * @property {string} script
 */

/** @type {Record<string, Walk>} */
const WALKS = {
  "a training loop of transformers": {
    library: "transformers",
    model: "LlamaForCausalLM",
    call: "out = compiled(",
    backward: "out.loss.backward()",
    heading: /layers\.0–1\.(self_attn|input_layernorm) ×2/,
    file: /modeling_llama\.py:\d+/,
    script: `\
"""Fine-tunes a tiny Llama (random weights) on random tokens."""

import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def build():
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    return LlamaForCausalLM(config)


def main():
    torch.manual_seed(0)
    model = build().train()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    running = 0.0
    for step in range(6):
        tokens = torch.randint(0, 256, (4, 32))
        start = time.perf_counter()
        out = compiled(input_ids=tokens, labels=tokens)
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        running = 0.9 * running + 0.1 * out.loss.item()
        print(f"step {step} loss {out.loss.item():.3f} avg {running:.3f} {time.perf_counter() - start:.2f}s")


if __name__ == "__main__":
    main()
`,
  },
  "a module of the user's around a model of transformers": {
    library: "transformers",
    model: "Scorer",
    call: "scores = scorer(",
    backward: "scores.sum().backward()",
    heading: /layers\.0–1\.(self_attn|input_layernorm) ×2/,
    file: /modeling_llama\.py:\d+/,
    script: `\
import torch
from torch import nn
from transformers import LlamaConfig, LlamaModel


class Scorer(nn.Module):
    def __init__(self, backbone, hidden):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(hidden, 1)

    def forward(self, tokens):
        states = self.backbone(input_ids=tokens, use_cache=False).last_hidden_state
        return self.head(states.mean(dim=1)).squeeze(-1)


config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1
)
scorer = torch.compile(Scorer(LlamaModel(config), 32))
scores = scorer(torch.randint(0, 64, (2, 16)))
scores.sum().backward()
`,
  },
  "a model of timm": {
    library: "timm",
    model: "VisionTransformer",
    call: "scores = compiled(",
    backward: "scores.sum().backward()",
    heading: /blocks\.0–1\.norm[12] ×2/,
    file: /(vision_transformer|mlp|attention|norm)\.py:\d+/,
    script: `\
import timm
import torch

model = timm.create_model(
    "vit_tiny_patch16_224", pretrained=False, img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=10
)
compiled = torch.compile(model)
scores = compiled(torch.randn(2, 3, 32, 32))
scores.sum().backward()
`,
  },
  "a model of diffusers": {
    library: "diffusers",
    model: "UNet2DModel",
    call: "noise = compiled(",
    backward: "noise.square().mean().backward()",
    heading: /0–1\.resnets\.0\.norm1 ×2/,
    file: /(resnet|unet_2d|unet_2d_blocks|embeddings|attention_processor)\.py:\d+/,
    script: `\
import torch
from diffusers import UNet2DModel

unet = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    attention_head_dim=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
compiled = torch.compile(unet)
noise = compiled(torch.randn(1, 3, 16, 16), 10).sample
noise.square().mean().backward()
`,
  },
};

/** What Dynamo calls a module before its path is made of that. */
const RAW_NAME = /_modules|__dict__|_orig_mod|L\['/;

for (const [title, walk] of Object.entries(WALKS)) {
  const look = `import importlib.util, sys; sys.exit(importlib.util.find_spec("${walk.library}") is None)`;
  const found = spawnSync(PYTHON, ["-c", look]).status === 0;
  const missing = `${title}: ${PYTHON} has no ${walk.library} (${PYTHON_VARIABLE} names another interpreter)`;
  (found ? describe : describe.skip)(found ? title : missing, () => walked(title, walk));
}

/** @param {string} title @param {Walk} walk */
function walked(title, { model, call, backward, heading, file, script }) {
  const picture = title.replace(/\W+/g, "-");
  /** @type {string} */
  let source;
  const workbench = onScreen({
    name: "library",
    viewport: { width: 1340, height: 820 },
    settings: {
      "irscope.python": PYTHON,
      "irscope.run.budgetSeconds": 560,
      "irscope.run.onSave": "off",
      "editor.minimap.enabled": false,
    },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(folder);
      source = path.join(folder, "train.py");
      fs.writeFileSync(source, script);
      return folder;
    },
  });
  const list = () => workbench.page.locator(".quick-input-widget:visible");
  const rows = () => workbench.page.locator(".quick-input-list .monaco-list-row");
  const active = (/** @type {RegExp | string} */ name) =>
    workbench.page.locator(".tab.active.selected", { hasText: name });
  const hover = () => workbench.page.locator(".monaco-hover:not(.hidden) .hover-contents");

  /** The kernels of a line of the script. @param {string} text */
  const kernelsOf = async (text) => {
    await workbench.goToText(source, text);
    await workbench.command("IRScope: Show Generated Kernel");
    await workbench.page.locator(".quick-input-title:visible", { hasText: model }).waitFor({ timeout: RUN_MS });
    await rows().first().waitFor();
  };

  /** All that the list says; it draws only the rows that it shows. */
  const wholeList = async () => {
    let said = "";
    for (let page = 0; page < 12; page += 1) {
      const text = await list().innerText();
      said += `\n${text}`;
      await workbench.page.keyboard.press("PageDown");
      await workbench.page.waitForTimeout(150);
    }
    return said;
  };

  it("the call lists its kernels while the run goes on, and one of them opens", async () => {
    await kernelsOf(call);
    await workbench.page.keyboard.press("Enter");
    await workbench.page.locator(".tab", { hasText: /\.cpp/ }).first().waitFor();
  });

  it("the list has all of them by module, with the lines of the library", async () => {
    const status = workbench.page.locator(".statusbar-item", { hasText: "IRScope" }).first();
    await until(
      () => status.innerText(),
      (text) => /IRScope: (no breaks|\d+ causes?)/.test(text),
      "the end of the run",
      RUN_MS,
    );
    await kernelsOf(call);
    await workbench.screenshot(`${picture}-list`);
    const said = await wholeList();
    assert.match(said, heading);
    assert.match(said, file);
    assert.match(said, /backward/);
    assert.doesNotMatch(said, RAW_NAME);
    await workbench.page.keyboard.press("Escape");
  });

  it("from a kernel to the library's line, and back to the call", async () => {
    await kernelsOf(call);
    await workbench.page.keyboard.press("Enter");
    await workbench.page.locator(".tab", { hasText: /\.cpp/ }).first().click();
    await workbench.command("IRScope: Go to the Library's Line");
    await Promise.race([active(/^(?!train).*\.py/).waitFor(), rows().first().waitFor()]);
    if (await rows().first().isVisible()) {
      await workbench.page.keyboard.press("Enter");
    }
    await active(/^(?!train).*\.py/).waitFor();
    const back = hover()
      .getByText(/^train\.py:\d+$/)
      .first();
    // The first time, the graphs of the run are read first, and there is no hover yet.
    await until(
      async () => {
        await workbench.page.keyboard.press("Escape");
        await workbench.command("Show or Focus Hover");
        return back
          .waitFor({ timeout: 5_000 })
          .then(() => true)
          .catch(() => false);
      },
      (shown) => shown,
      "the hover with the call",
    );
    await workbench.screenshot(`${picture}-library-line`);
    await back.click();
    await active("train.py").waitFor();
  });

  it("the backward has its own kernels, and the lens at torch.compile the model's name", async () => {
    await kernelsOf(backward);
    assert.doesNotMatch(await wholeList(), /forward/);
    await workbench.page.keyboard.press("Escape");
    const lens = workbench.page.locator(".codelens-decoration a", { hasText: /1 graph · \d+ kernels/ });
    await lens.first().waitFor();
    await workbench.screenshot(`${picture}-lens`);
  });

  it("the profile has the model's modules as a tree and as a flame graph", async () => {
    await workbench.goToText(source, call);
    await workbench.command("IRScope: Profile This File");
    const panel = workbench.webview();
    await panel.locator("[data-part='Modules']").click({ timeout: RUN_MS });
    const toTree = panel.getByRole("button", { name: "Table", exact: true });
    if (await toTree.isVisible()) {
      await toTree.click(); // a second attempt: the tab remembers the flame graph
    }
    const tree = panel.locator("table.measured tbody");
    const module = tree
      .locator("tr", { hasText: heading.source.includes("layers") ? /layers\.0–1 ×2/ : model })
      .first();
    await module.waitFor();
    await workbench.screenshot(`${picture}-modules`);
    assert.match(await tree.innerText(), new RegExp(`step[^]*${model}`));
    assert.doesNotMatch(await tree.innerText(), RAW_NAME);
    await panel.getByRole("button", { name: "Flame Graph" }).click();
    await panel.locator(".box", { hasText: model }).first().click();
    assert.match(await panel.locator(".statusline").innerText(), new RegExp(`${model}.*of step`, "s"));
    await workbench.screenshot(`${picture}-flame-graph`);
    await panel.locator("[data-part='Lines']").click();
    assert.match(await panel.locator(".measured-facts").innerText(), new RegExp(`${model}\\s.*:\\d+\\s+forward`, "s"));
  });
}
