/** The ranks of a job: tables, texts and signs. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/ranks/model");

/** @param {number} rank @param {object} more */
const rank = (rank, more = {}) => ({
  rank, run: "r", outcome: "completed", compiles: 2, kernels: 3, collectives: 1, sentBytes: 4096, memory: null, alike: "", others: 0, process: "", ...more,
}); // prettier-ignore
const STAGE = { title: "Dynamo graph", left: "a", right: "b", same: true, rows: [], more: 0 };
const COMPILE = { function: "f", place: { uri: "", line: 0 }, left: "0/0", right: "0/0", outcome: "", stages: [STAGE] };
const JOB = { ranks: [rank(0), rank(37)], first: 0, other: 37, compiles: [COMPILE], divergences: [] };

describe("the model of ranks", () => {
  it("ranks that stand for others have a column more", () => {
    assert.equal(model.headsOf(JOB).length, 7);
    const job = { ...JOB, ranks: [rank(0, { alike: "1-36, 38-1023" }), rank(37, { sentBytes: null, memory: 2e6 })] };
    const heads = model.headsOf(job);
    assert.deepEqual(model.cellsOf(job.ranks[0], heads), [
      "0",
      "completed",
      "2",
      "3",
      "1",
      "4.1 kB",
      "–",
      "1-36, 38-1023",
    ]);
    assert.deepEqual(model.cellsOf(job.ranks[1], heads).slice(5), ["symbolic", "2 MB", "–"]);
    assert.deepEqual(model.choices(job), [{ value: "37", text: "rank 37" }]);
    assert.equal(model.nameOf(rank(0, { others: 1022 }), "rank"), "rank 0 and 1,022 like it");
  });

  it("of many ranks the first are named, and the others counted", () => {
    const spans = (/** @type {number} */ count) => Array.from({ length: count }, (_, at) => `${at * 4}-${at * 4 + 2}`);
    assert.equal(model.shortened(spans(9).join(", ")), spans(9).join(", "));
    assert.equal(model.shortened(spans(120).join(", ")), `${spans(8).join(", ")}, and 112 more`);
    const job = { ...JOB, ranks: [rank(0, { alike: spans(120).join(", ") })] };
    assert.match(model.cellsOf(job.ranks[0], model.headsOf(job)).at(-1), /and 112 more$/);
  });

  it("a compile differs in its graphs, its outcome, or by being on one rank only", () => {
    assert.equal(model.summaryOf(JOB), "1 compile, all the same");
    const graph = { ...COMPILE, stages: [STAGE, { ...STAGE, same: false }] };
    const alone = { ...COMPILE, left: "" };
    const broken = { ...COMPILE, outcome: "compiled, graph-break" };
    assert.equal(model.summaryOf({ ...JOB, compiles: [COMPILE, graph, alone, broken] }), "3 of 4 compiles differ");
    assert.deepEqual(
      [COMPILE, graph, alone, broken].map((one) => model.compileText(one, 0, 37)),
      ["the same", "", "only on rank 37", "compiled ↔ graph break"],
    );
  });

  it("one rank alone is not said to be like the others", () => {
    const job = { ...JOB, world: 2, other: null, divergences: [], compiles: [] };
    assert.equal(model.summaryOf(job), "All ranks compiled the same");
    assert.equal(model.summaryOf({ ...job, world: 0 }), "");
    const alone = { ...job, ranks: [{ ...job.ranks[0], alike: "" }] };
    assert.equal(model.summaryOf(alone), "Rank 0 alone was compiled");
    assert.equal(
      model.summaryOf({ ...alone, ranks: [{ ...job.ranks[0], alike: "1" }] }),
      "All ranks compiled the same",
    );
  });

  it("rows say what they are", () => {
    const row = (/** @type {string} */ sign, left = "x") => ({ sign, left, right: "", leftLine: 0, rightLine: 0 });
    const words = [row("changed"), row("left"), row("right"), row(""), row("skipped", "1"), row("skipped", "12")].map(
      (each) => model.wordOf(each, 0, 37),
    );
    assert.deepEqual(words, [
      "differs",
      "only on rank 0",
      "only on rank 37",
      "the same",
      "1 statement that is the same",
      "12 statements that are the same",
    ]);
    const rows = [row("skipped", "3"), row(""), row("changed")];
    assert.equal(model.stageText({ ...STAGE, same: false, rows }), "1 statement differs");
    assert.equal(model.stageText({ ...STAGE, same: false, rows, more: 9 }), "1 statement or more differ");
  });

  it("a collective and a bucket have a cell below each head", () => {
    const overlap = { calls: 2, ranks: 8, sentBytes: 4096, beside: "nothing", operation: "all_reduce" };
    assert.deepEqual(model.overlapCells(overlap), ["2", "8 ranks", "4.1 kB", "nothing"]);
    assert.deepEqual(model.overlapCells({ ...overlap, ranks: null, sentBytes: null }).slice(1, 3), ["–", "symbolic"]);
    assert.equal(model.overlapCells(overlap).length + 1, model.OVERLAP_HEADS.length);
    const bucket = { compile: "0/0", number: 1, part: "submod_2", parameters: 2, bytes: 1050624, beside: "nothing" };
    assert.deepEqual(model.bucketCells(bucket), ["submod_2", "2", "1.05 MB", "nothing"]);
    assert.equal(model.bucketCells(bucket).length + 1, model.BUCKET_HEADS.length);
  });
});
