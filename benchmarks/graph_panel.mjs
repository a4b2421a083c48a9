/**
 * The graph panel with a large graph in a headless Chromium without a GPU: the time to the first picture, and frames a
 * second while it is panned and zoomed; medians of five runs.
 *
 *   python benchmarks/graph_columns.py out/large.json       (or with --store and --stage a stage of a real run)
 *   node benchmarks/graph_panel.mjs out/large.json
 */

import * as fs from "node:fs";
import * as os from "node:os";
import { launchBrowser } from "../tests/editor/browser.mjs";
import { servePanel } from "../tests/editor/panelPage.mjs";
import { THEMES } from "../tests/editor/themes.mjs";

const RUNS = Number(process.env["RUNS"] ?? 5);
const SECONDS = 4;
const file = process.argv[2] ?? "";
const graph = fs.readFileSync(file, "utf8");
const kernels = fs.readFileSync(file.replace(/\.json$/, ".kernels.json"), "utf8");

/** In the panel: pans and zooms for some seconds, a step a frame, and gives the times between the frames. */
function move(/** @type {{kind: string, seconds: number}} */ { kind, seconds }) {
  const canvas = /** @type {any} */ (globalThis).document.querySelector("#canvas");
  const { width, height } = canvas.getBoundingClientRect();
  return new Promise((resolve) => {
    /** @type {number[]} */
    const times = [];
    let last = performance.now();
    const begun = last;
    const step = (/** @type {number} */ now) => {
      times.push(now - last);
      last = now;
      const turn = Math.sin((now - begun) / 600);
      const wheel =
        kind === "zoom"
          ? { deltaY: turn * 40, clientX: width / 2, clientY: height / 2 }
          : { deltaX: turn * 30, deltaY: turn * 12, shiftKey: true };
      canvas.dispatchEvent(new WheelEvent("wheel", { ...wheel, bubbles: true, cancelable: true }));
      if (now - begun < seconds * 1000) {
        requestAnimationFrame(step);
      } else {
        resolve(times.slice(2));
      }
    };
    requestAnimationFrame(step);
  });
}

const server = await servePanel(
  "graph",
  { run: "r", stage: "s", title: "t" },
  (method) => (method === "irscope/graph" ? graph : kernels),
  THEMES.dark.css,
  THEMES.dark.kind,
);
const browser = await launchBrowser();
/** @type {Record<string, number[]>} */
const found = {};
const note = (/** @type {string} */ name, /** @type {number} */ value) => (found[name] ??= []).push(value);
try {
  for (let run = 0; run < RUNS; run += 1) {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    await page.goto(server.url);
    const drawn = await page.waitForFunction(
      () => /** @type {any} */ (globalThis).said?.find((/** @type {any} */ each) => each.type === "drawn"),
      null,
      { timeout: 120_000 },
    );
    note("first picture, ms", (await drawn.jsonValue()).milliseconds);
    const panel = /** @type {import("playwright-core").Frame} */ (page.frames()[1]);
    await page.waitForTimeout(1500);
    for (const [view, button] of [
      ["as opened", ""],
      ["whole graph", "#fit"],
      ["all expanded", "#expand"],
      ["all expanded, whole", "#fit"],
    ]) {
      if (button !== "") {
        const boxes = await panel.locator("#canvas").getAttribute("data-boxes");
        await panel.locator(button ?? "").click();
        if (button === "#expand") {
          const more = (/** @type {string | null} */ before) =>
            /** @type {any} */ (globalThis).document.querySelector("#canvas").dataset.boxes !== before;
          await panel.waitForFunction(more, boxes, { timeout: 120_000 });
        }
        await page.waitForTimeout(1500);
      }
      note(`boxes, ${view}`, Number(await panel.locator("#canvas").getAttribute("data-boxes")));
      for (const kind of ["pan", "zoom"]) {
        const times = /** @type {number[]} */ (await panel.evaluate(move, { kind, seconds: SECONDS })).sort(
          (a, b) => a - b,
        );
        const mean = times.reduce((all, each) => all + each, 0) / times.length;
        note(`${kind}, ${view}: frames a second`, 1000 / mean);
        note(`${kind}, ${view}: p95 of a frame, ms`, times[Math.floor(times.length * 0.95)] ?? 0);
      }
    }
    await page.close();
  }
} finally {
  await browser.close();
  server.stop();
}
const nodes = JSON.parse(graph).nodes.name.length;
console.log(
  `${nodes} nodes, ${JSON.parse(graph).edges.length / 2} edges; ${os.cpus().length} cores, load ${os.loadavg()[0]?.toFixed(1)}; medians of ${RUNS} runs (least to most)`,
);
for (const [name, values] of Object.entries(found)) {
  const sorted = values.sort((a, b) => a - b);
  const words = (/** @type {number | undefined} */ value) =>
    (value ?? 0).toFixed(name.startsWith("boxes") || name.startsWith("first") ? 0 : 1);
  console.log(
    `  ${name.padEnd(52)} ${words(sorted[Math.floor(sorted.length / 2)]).padStart(8)}   (${words(sorted[0])} to ${words(sorted.at(-1))})`,
  );
}
