/** The ranks of a job in a page of their own: legible in a wide and in a narrow view, what differs is marked, each place a link. */

import assert from "node:assert/strict";
import path from "node:path";
import { bundle } from "../../../scripts/build.mjs";
import { SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { LOOKS, THEMES } from "../themes.mjs";
import { until } from "../until.mjs";

const MARKUP = "<img src=x onerror=alert(1)>";
const PLACE = { uri: "file:///home/me/train.py", line: 9 };
const LEFT = "irscope:/rank-0/0/0/dynamo-graph.py";
const RIGHT = "irscope:/rank-1/0/0/dynamo-graph.py";

/** @param {string} sign @param {string} left @param {string} right @param {number} [line] */
const row = (sign, left, right, line = 4) => ({ sign, left, right, leftLine: line, rightLine: line + 1 });
/** @param {number} rank @param {string} alike */
const rank = (rank, alike = "") => ({
  rank, run: `rank-${rank}`, outcome: "completed", compiles: 2, kernels: 30, collectives: 4, sentBytes: rank === 2 ? null : 123_456_789,
  memory: rank === 1 ? null : 3.2e9, alike, others: alike === "" ? 0 : 840, process: "",
}); // prettier-ignore
const ROWS = [
  row("skipped", "12", ""),
  row("", "y = x.sin()", "y = x.sin()"),
  row("changed", "scaled = hidden * 2.0", "scaled = hidden * 3.0", 7),
  row("left", "mask = torch.ops.aten.bitwise_and(le, transformer_encoder_layer_attention_mask_of_the_first_block)", ""),
  row("right", "", MARKUP),
];
const CODE = { uri: "irscope:/rank-0/0/0/output-code.py", line: 30 };
const STAGE = { title: "Dynamo graph", left: LEFT, right: RIGHT, same: false, rows: ROWS, more: 0 };
const COMPILE = { function: "loss_of", place: PLACE, left: "1/0", right: "1/0", outcome: "", stages: [STAGE] };
/** @param {boolean} exposed */
const overlap = (exposed) => ({
  operation: exposed ? "all_reduce" : "all_gather_into_tensor", place: PLACE, calls: 24, ranks: exposed ? 8 : null,
  sentBytes: exposed ? 26_214_400 : null, exposed, code: CODE,
  beside: exposed ? "nothing" : `3 (triton_poi_fused_native_layer_norm_gelu_of_the_first_block_0, extern_kernels.mm, ${MARKUP}), 12.6 MB`,
  way: exposed ? "" : "forward-graph 0 → reorder_for_locality 2 → output-code 3",
}); // prettier-ignore
const JOB = {
  run: "rank-0", world: 2, ranks: [rank(0), rank(1)], moreRanks: 0, first: 0, other: 1, unseen: "", reason: "", moreCompiles: 0,
  divergences: [{ code: "rank-divergence-value", message: `A **constant** of ${MARKUP} is 2.0 on rank 0.`, place: PLACE, ranks: "0, 1" }],
  compiles: [COMPILE, { ...COMPILE, function: "forward", left: "0/0", right: "0/0", stages: [{ ...STAGE, same: true, rows: [] }] }],
  waits: [{ operation: "all_reduce", place: PLACE, calls: 3, seconds: 0.81, longest: 0.3, late: 1, lateCalls: 3, typical: 0.27, before: { ...PLACE, line: 3 } }],
  overlaps: [overlap(true), overlap(false)], moreOverlaps: 0, overlapText: "1 of 2 collectives runs beside nothing: the rank only waits.",
  runtime: [{ issuer: "pipeline", operation: "send, rank 1", module: `stage 0 (Block), ${MARKUP}`, place: PLACE, calls: 6, bytes: 1024, beside: "4.35 ms each" }],
  buckets: [{ compile: "0/0", number: 1, part: "submod_2", parameters: 12, bytes: 26_214_400, exposed: true, beside: "nothing in this graph", code: CODE }],
}; // prettier-ignore
const NONE = {
  ...JOB, world: 0, ranks: [], other: null, divergences: [], compiles: [], waits: [], overlaps: [], overlapText: "", buckets: [], runtime: [],
  reason: "This run has one process. Run several ranks with irscope run --nproc-per-node 2.",
}; // prettier-ignore
const ALIKE = Array.from({ length: 120 }, (_, at) => `${at * 8}-${at * 8 + 6}`).join(", ");
const CROWDED = {
  ...JOB,
  world: 4096,
  ranks: Array.from({ length: 24 }, (_, at) => rank(at, at < 2 ? ALIKE : "")),
  moreRanks: 3840,
  moreCompiles: 55,
  overlaps: Array.from({ length: 40 }, (_, at) => overlap(at % 3 === 0)),
  moreOverlaps: 460,
  compiles: [
    { ...COMPILE, stages: [{ ...STAGE, rows: Array.from({ length: 6 }, () => ROWS).flat(), more: 917 }] },
    ...Array.from({ length: 12 }, (_, at) => ({ ...COMPILE, left: "", right: `${at}/0`, stages: [] })),
  ],
  divergences: Array.from({ length: 8 }, () => ({ ...JOB.divergences[0], ranks: ALIKE })),
};
const CASES = { nothing: NONE, two: JOB, crowded: CROWDED };

describe("the ranks of a job in a page of their own", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  before(async () => {
    await bundle();
    browser = await launchBrowser();
  });
  after(() => browser.close());

  /** @param {keyof typeof THEMES} theme @param {number} width @param {object} job */
  async function open(theme, width, job) {
    const { kind, css } = THEMES[theme];
    /** @type {any[]} */
    const asked = [];
    const answer = (/** @type {string} */ _, /** @type {any} */ params) => {
      asked.push(params);
      return JSON.stringify({ ...job, ...(params.other === undefined ? {} : { other: Number(params.other) }) });
    };
    const host = await servePanel("ranks", { run: "rank-0", title: "train.py" }, answer, css, kind);
    const page = await browser.newPage({ viewport: { width, height: 600 } });
    await page.goto(host.url);
    const close = async () => {
      await page.close();
      host.stop();
    };
    return { page, frame: page.frameLocator("iframe"), asked, close };
  }

  for (const [name, job] of Object.entries(CASES)) {
    for (const [theme, width] of LOOKS) {
      it(`${name}: is legible in ${theme} at ${width} px`, async () => {
        const { page, frame, close } = await open(theme, width, job);
        await frame
          .locator(job.ranks.length === 0 ? ".notice" : "table.rank-table")
          .first()
          .waitFor();
        const picture = path.join(SCREENSHOTS, `ranks-${name}-${theme}-${width}`);
        await page.screenshot({ path: `${picture}.png` });
        const inner = page.frames().find((each) => each !== page.mainFrame());
        assert.ok(inner);
        assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
        const body = frame.locator(".body");
        assert.ok(await body.evaluate((each) => each.scrollWidth <= each.clientWidth), "it does not scroll sideways");
        const cut = await frame
          .locator("td:not(.sign), .link, .toolbar > *")
          .evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0));
        assert.equal(cut.length, 0, "no text is cut off");
        await body.evaluate((each) => each.scrollTo(0, 100_000));
        await page.screenshot({ path: `${picture}-end.png` });
        await close();
      });
    }
  }

  it("says what differs, leads to each place, and puts another rank beside the first", async () => {
    const { page, frame, asked, close } = await open("dark", 1340, {
      ...JOB,
      ranks: [rank(0, "3-842"), rank(1), rank(2)],
    });
    await frame.getByText("rank 0 and 840 like it, beside").waitFor();
    await frame.getByText("1 of 2 compiles differs").waitFor();
    const details = frame.locator("details");
    assert.deepEqual(await details.evaluateAll((all) => all.map((each) => each.hasAttribute("open"))), [true, false]);
    assert.deepEqual(
      await frame.locator(".side-by-side tbody tr").evaluateAll((all) => all.map((each) => each.className)),
      ["skipped", "alike", "changed", "left", "right"],
    );
    assert.equal(await frame.locator("img").count(), 0, "what a store says is text");
    const said = (/** @type {string} */ type) =>
      page.evaluate(
        (type) => /** @type {any} */ (globalThis).said.filter((/** @type {any} */ each) => each.type === type).at(-1),
        type,
      );
    await frame.getByText("rank 1 was the last to arrive, 3 of 3 times, and was in").waitFor();
    await frame.getByText("send, rank 1").waitFor();
    await frame.getByRole("button", { name: "scaled = hidden * 3.0" }).click();
    await until(
      () => said("open"),
      (each) => each?.place.uri === RIGHT && each.place.line === 8,
      "the line of the other rank",
    );
    await frame.getByRole("button", { name: "Compare Dynamo graph of ranks 0 and 1" }).click();
    await until(
      () => said("compare"),
      (each) => each?.left === LEFT && each.right === RIGHT,
      "both texts",
    );
    await frame.getByLabel("Beside the first rank").selectOption("2");
    await frame.locator("th", { hasText: "rank 2" }).first().waitFor();
    assert.deepEqual(asked.at(-1), { run: "rank-0", other: "2" });
    await close();
  });

  it("counts what it leaves out", async () => {
    const { frame, close } = await open("dark", 1340, CROWDED);
    for (const text of [
      "and 3,840 more ranks",
      "and 55 more compiles",
      "and 917 more rows",
      "and 460 more collectives",
    ]) {
      await frame.getByText(text).waitFor();
    }
    await close();
  });
});
