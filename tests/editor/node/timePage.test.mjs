/** The flame charts in one page: zoom by dragging and by keys, search, and the tables of compile time and measured time. */

import assert from "node:assert/strict";
import { bundle } from "../../../scripts/build.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { THEMES } from "../themes.mjs";

const PLACE = { uri: "file:///train.py", line: 0 };
const PHASES = {
  reason: "",
  compiles: 1,
  phases: {
    measures: [
      { name: "compile time", unit: "seconds" },
      { name: "other threads", unit: "seconds" },
    ],
    leftOut: 0,
    rows: [
      { name: "this run", kind: "", place: { uri: "", line: 0 }, parent: -1, own: [0, 0], whole: [20, 5] },
      { name: "f", kind: "", place: PLACE, parent: 0, own: [0, 0], whole: [20, 5] },
      { name: "compile_fx ×2", kind: "inductor", place: { uri: "", line: 0 }, parent: 1, own: [2, 5], whole: [12, 5] },
      { name: "code_gen", kind: "", place: { uri: "", line: 0 }, parent: 2, own: [10, 0], whole: [10, 0] },
      { name: "dynamo", kind: "", place: { uri: "", line: 0 }, parent: 1, own: [8, 0], whole: [8, 0] },
    ],
  },
  pieces: {
    sizes: ["1–512", "any size"],
    rows: [{ title: "submod_0 and 30 alike", cells: ["miss CG 1.2 s", ""] }],
    note: "CG: a CUDA graph is captured",
    hiddenRows: 0,
    hiddenSizes: 3,
  },
};

const MEASURED = {
  run: "r", step: 8e-5, device: 4e-5, owned: 8e-5, profiled: 1e-4, idle: 6e-5, steps: 20, bounds: "the least time on an H100", programs: [], regions: [],
  lines: [{ place: PLACE, seconds: 4e-5, shared: 0, possible: 1e-5, refuted: false, bound: "memory", calls: 2, kernels: ["relu"] }],
  kernels: [], gaps: [], modules: { measures: [], rows: [], leftOut: 0, isChange: false }, frames: {
    measures: [{ name: "time", unit: "seconds" }, { name: "bound", unit: "seconds" }, { name: "moved", unit: "bytes" }],
    leftOut: 0,
    rows: [
      { name: "step", kind: "", place: { uri: "", line: 0 }, parent: -1, own: [0, 0, 0], whole: [4e-5, 1e-5, 2e6] },
      { name: "train.py:1", kind: "forward", place: PLACE, parent: 0, own: [4e-5, 0, 0], whole: [4e-5, 1e-5, 2e6] },
    ],
  }, graphs: { recorded: 0, replayed: 1, skipped: [], recordings: 0, again: [], pools: [] }, costs: [], leftOut: { lines: 0, kernels: 0, gaps: 0 }, words: ["launch", "relu", "0/0", "kernel"],
  places: [PLACE], pieces: [[0, 0, 6e-5, 0, 1, 2, 0, 0], [1, 6e-5, 4e-5, 3, 1, 2, 0, 0]], reason: "",
}; // prettier-ignore

describe("compile time in a page of its own", () => {
  it("is zoomed by dragging and by keys, and searched", async () => {
    await bundle();
    const { kind, css } = THEMES.light;
    const answer = (/** @type {string} */ method) =>
      JSON.stringify(method === "irscope/phases" ? PHASES : method === "irscope/measured" ? MEASURED : { runs: [] });
    const host = await servePanel("dock", { run: "r", title: "t" }, answer, css, kind);
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage({ viewport: { width: 1000, height: 300 } });
      await page.goto(host.url);
      const frame = page.frameLocator("iframe");
      await frame.locator("#tab-time").click();
      await frame.locator(".box").first().waitFor();
      const second = () => frame.locator(".ruler span").nth(1).innerText();
      assert.equal(await second(), "2.0 s");
      const chart = await frame.locator(".flame").boundingBox();
      assert.ok(chart);
      await page.mouse.move(chart.x + chart.width * 0.25, chart.y + 10);
      await page.mouse.down();
      await page.mouse.move(chart.x + chart.width * 0.5, chart.y + 10, { steps: 4 });
      await page.mouse.up();
      assert.equal(await second(), "500 ms", "a quarter of the time fills the chart");
      await frame.locator(".box:focus").press("Escape");
      assert.equal(await second(), "1.0 s", "the phase around");
      await frame.locator(".box:focus").press("Escape");
      assert.equal(await second(), "2.0 s");
      await frame.locator(".box:focus").press("+");
      assert.equal(await second(), "1.0 s");
      await frame.locator(".measure-bar button", { hasText: "Zoom Out" }).click();
      assert.equal(await second(), "2.0 s");
      await frame.getByLabel("Search phases").fill("inductor");
      assert.equal(await frame.locator(".measure-bar [role=status]").innerText(), "1 phase, 12.0 s");
      assert.ok((await frame.locator(".box.faded").count()) > 0);
      await frame.getByLabel("Search phases").press("Enter");
      assert.match(await frame.locator(".statusline").innerText(), /compile_fx/);
      await frame.getByLabel("Search phases").press("Escape");
      assert.equal(await frame.locator(".box.faded").count(), 0);
      await frame.locator(".measure-bar button", { hasText: "Table" }).click();
      const phases = frame.locator("table.measured tbody");
      assert.match(await phases.innerText(), /compile_fx ×2\s*inductor\s+12\.0 s\s+60 %\s+2\.0 s\s+5\.0 s/);
      await frame.getByLabel("Search phases").fill("code");
      assert.match(await frame.locator("tr:not(.faded) .part").allInnerTexts().then(String), /^\W*code_gen$/);
      await frame.getByLabel("Search phases").press("Escape");
      await frame.locator(".toolbar button", { hasText: "Pieces" }).click();
      assert.match(await frame.locator(".pieces tbody").innerText(), /^submod_0 and 30 alike\s+miss CG 1\.2 s\s+–$/);
      assert.match(await frame.locator(".pieces p").innerText(), /captured; 3 more sizes left out$/);
      assert.equal(await frame.locator(".toolbar button", { hasText: "Phases" }).count(), 1);
      await frame.locator("#tab-measured").click();
      await frame.locator("table.measured tbody tr").waitFor();
      assert.match(await frame.locator("table.measured tbody").innerText(), /40 µs\s+50 %\s+10 µs\s+30 µs\s+memory/);
      assert.match(await frame.locator(".measured-facts").innerText(), /CUDA graphs: 1 replayed in a step/);
      await frame.locator("[data-part='Kernels']").click();
      await frame.locator(".notice-text", { hasText: "No kernels to show." }).waitFor();
      await frame.locator("[data-part='Modules']").click();
      await frame.locator(".notice-text", { hasText: "No modules to show." }).waitFor();
      await frame.locator("[data-part='Frames']").click();
      const rows = frame.locator("table.measured tbody");
      assert.match(await rows.innerText(), /step\s+40 µs\s+50 %.*train\.py:1\s*forward\s+40 µs\s+50 %\s+40 µs/s);
      const inner = page.frames()[1];
      assert.ok(inner);
      assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
      await frame.getByRole("button", { name: "step", exact: true }).click();
      assert.doesNotMatch(await rows.innerText(), /train\.py/);
      await frame.getByRole("button", { name: "step", exact: true, expanded: false }).press("Enter");
      assert.match(await rows.innerText(), /train\.py/);
      await frame.getByRole("button", { name: "Flame Graph" }).click();
      await frame.locator(".box", { hasText: "train.py:1 forward" }).click();
      assert.match(
        await frame.locator(".statusline").innerText(),
        /forward.*40 µs 50 % of step.*possible 10 µs.*moved 2 MB/s,
      );
      await frame.locator("[data-part='Step']").click();
      assert.equal(await frame.locator(".box.idle").count(), 1, "while the device waits for the launch");
      await frame.locator(".box.kernels").click();
      assert.match(await frame.locator(".statusline").innerText(), /relu.*40 µs 40 % of the step.*train\.py\s*:1/s);
    } finally {
      await browser.close();
      host.stop();
    }
  });
});
