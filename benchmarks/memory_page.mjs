/**
 * How long the page of the panel *Memory* takes to draw an answer, in a headless browser.
 *
 *     .venv/bin/python benchmarks/memory_panel.py --nodes 20000 --answer /tmp/answer.json
 *     node benchmarks/memory_page.mjs /tmp/answer.json
 *
 * The time is from the page's request until the second frame after the chart is there: transfer, parsing, layout and
 * painting.
 */

import * as fs from "node:fs";
import { ensureBuilt } from "../scripts/build.mjs";
import { launchBrowser } from "../tests/editor/browser.mjs";
import { servePanel } from "../tests/editor/panelPage.mjs";
import { THEMES } from "../tests/editor/themes.mjs";

const ROUNDS = 3;

const [file = ""] = process.argv.slice(2);
const answer = fs.readFileSync(file, "utf8");
await ensureBuilt();
const { kind, css } = THEMES.dark;
const noPlaces = JSON.stringify({ run: "r", plans: [] });
const host = await servePanel(
  "memory",
  { run: "r", title: "Memory" },
  (method) => (method === "irscope/memory" ? answer : method === "irscope/age" ? '{"text":""}' : noPlaces),
  css,
  kind,
);
const browser = await launchBrowser();
try {
  for (let round = 0; round < ROUNDS; round += 1) {
    const page = await browser.newPage({ viewport: { width: 1340, height: 500 } });
    await page.addInitScript(() => {
      const seen = /** @type {any} */ (globalThis);
      seen.began = 0;
      seen.addEventListener("message", (/** @type {MessageEvent} */ { data }) => {
        if (data?.type === "request" && data.method === "irscope/memory") {
          seen.began = performance.now();
        }
      });
    });
    await page.goto(host.url);
    const frame = page.frames()[1];
    await frame?.locator(".areas path").first().waitFor({ state: "attached" });
    const milliseconds = await page.evaluate(
      () =>
        new Promise((/** @type {(value: number) => void} */ resolve) => {
          const frames = /** @type {any} */ (globalThis).requestAnimationFrame;
          frames(() => frames(() => resolve(performance.now() - /** @type {any} */ (globalThis).began)));
        }),
    );
    console.log(`drawn after ${(milliseconds / 1000).toFixed(2)} s`);
    await page.close();
  }
} finally {
  await browser.close();
  host.stop();
}
