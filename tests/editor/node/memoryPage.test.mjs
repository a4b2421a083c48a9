/** The tab *Memory* with a measured step: a Llama of 4 layers in bfloat16 with AdamW, as an H200 ran it. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { ensureBuilt } from "../../../scripts/build.mjs";
import { ROOT, SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { THEMES } from "../themes.mjs";

const STEP = fs.readFileSync(path.join(ROOT, "tests", "editor", "fixtures", "measured_step.json"), "utf8");

describe("the memory of a measured step in a page of its own", () => {
  it("is a chart with its peak, a tree of modules and one of lines, also where there is little room", async () => {
    await ensureBuilt();
    const { kind, css } = THEMES.dark;
    const answer = (/** @type {string} */ method) =>
      method === "irscope/memory" ? STEP : JSON.stringify({ text: "", run: "r", plans: [] });
    const host = await servePanel("memory", { run: "r", title: "Memory" }, answer, css, kind);
    const browser = await launchBrowser();
    try {
      for (const width of [1340, 400]) {
        const page = await browser.newPage({ viewport: { width, height: 460 } });
        await page.goto(host.url);
        const frame = page.frames()[1];
        assert.ok(frame);
        await frame.locator(".area.others").waitFor({ state: "attached" });
        assert.match(
          (await frame.locator(".toolbar").innerText()) ?? "",
          /peak 728 MB in backward of 0\/0\..*fragmentation/s,
        );
        assert.match(
          (await frame.locator("[role=slider]").getAttribute("aria-valuetext")) ?? "",
          /^At 46 % of the step, 728 MB$/,
        );
        const bytes = await frame.locator("table.buffers tbody td:nth-child(2)").first().boundingBox();
        assert.ok(bytes !== null && bytes.x + bytes.width <= width, "the bytes are in sight");
        fs.mkdirSync(SCREENSHOTS, { recursive: true });
        await page.screenshot({ path: path.join(SCREENSHOTS, `memory-step-${width}.png`) });
        for (const [part, named] of [
          ["Modules", "layers.0–3 ×4"],
          ["Lines", "modeling_llama.py"],
        ]) {
          await frame.locator(`[data-part="${part}"]`).click();
          await frame.locator(".measure-tree tbody tr", { hasText: named }).first().waitFor();
          assert.match(await frame.locator(".measure-tree tbody tr").first().innerText(), /728\s+MB/);
        }
        await frame.locator("button", { hasText: "Go to Peak" }).click();
        await frame.locator(".holders h2 .chip").waitFor();
        await page.close();
      }
    } finally {
      await browser.close();
      host.stop();
    }
  });
});
