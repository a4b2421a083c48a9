/** The pipeline of a compile as data. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/strip/model", "panels/strip/search");

const RUN = "r1";
/** @param {string} id @param {string} track @param {number} column @param {object} more */
const stage = (id, track, column, more = {}) => ({
  stage: `0/0/${id}`,
  name: id,
  role: id === "bytecode" ? "source" : id === "output-code" ? "code" : "graph",
  title: id,
  track,
  column,
  isGraph: id.endsWith("-graph"),
  count: null,
  unit: "",
  bytes: 2500,
  seconds: null,
  passes: [],
  quiet: [],
  ops: [],
  symbols: [],
  beside: [],
  entries: [{ stage: `0/0/${id}`, title: id, uri: `irscope:/${RUN}/0/0/${id}.py`, bytes: 2500 }],
  ...more,
});

const bytecode = stage("bytecode", "shared", 0);
const forward = stage("forward-graph", "forward", 1, {
  count: 1,
  unit: "nodes",
  seconds: 2,
  passes: [{ name: "pattern_matcher", stage: "0/0/pass/1", uri: `irscope:/${RUN}/0/0/pass/1.py` }],
  ops: [{ name: "aten.mul", count: 3, line: 1 }],
});
const backward = stage("backward-graph", "backward", 1, { seconds: 1 });
const code = stage("output-code", "forward", 2, { quiet: [{ name: "no_mul" }] });
const PIPELINE = { run: RUN, stages: [bytecode, forward, backward, code] };

describe("the model of the pipeline", () => {
  it("a card says what is in a stage, its share of the time, and its side", () => {
    const row = model.rowOf(PIPELINE.stages);
    assert.deepEqual(row, { both: true, most: 2 });
    const card = model.cardOf(forward, row);
    assert.deepEqual(card.facts, ["1 node", "2.0 s"]);
    assert.deepEqual([card.share, card.side], [1, "forward"]);
    assert.deepEqual(model.cardOf(backward, row).share, 0.5);
    assert.deepEqual(model.cardOf(bytecode, row).facts, ["2.5 kB"]);
    assert.equal(model.cardOf(bytecode, row).side, "");
    const alone = model.rowOf([bytecode, forward]);
    assert.deepEqual([alone.both, model.cardOf(forward, alone).side], [false, ""]);
  });

  it("cards that do not fit beside each other go on in the next line", () => {
    assert.equal(model.cardsPerLine(1000, 80, 12), 11);
    assert.equal(model.cardsPerLine(172, 80, 12), 2);
    assert.equal(model.cardsPerLine(30, 80, 12), 1, "one is always there, however narrow");
    /** @param {any[]} stages @param {number} perLine */
    const cells = (stages, perLine) =>
      Object.fromEntries(
        [...model.cellsOf(stages, perLine)].map(([id, cell]) => [id, [cell.column, cell.row, cell.rows]]),
      );
    assert.deepEqual(cells(PIPELINE.stages, 3), {
      "0/0/bytecode": [1, 1, 2],
      "0/0/forward-graph": [2, 1, 1],
      "0/0/backward-graph": [2, 2, 1],
      "0/0/output-code": [3, 1, 1],
    });
    assert.deepEqual(cells(PIPELINE.stages, 2)["0/0/output-code"], [1, 3, 1]);
    assert.deepEqual(cells(PIPELINE.stages, 1), {
      "0/0/bytecode": [1, 1, 1],
      "0/0/forward-graph": [1, 2, 1],
      "0/0/backward-graph": [1, 3, 1],
      "0/0/output-code": [1, 4, 1],
    });
  });

  it("stages of one column and side are below each other", () => {
    const again = stage("forward-graph-2", "forward", 1);
    const twice = model.cellsOf([bytecode, forward, again, backward], 2);
    assert.deepEqual(
      [forward, again, backward, bytecode].map(({ stage: id }) => [twice.get(id).row, twice.get(id).rows]),
      [
        [1, 1],
        [2, 1],
        [3, 1],
        [1, 3],
      ],
    );
    const other = stage("compiled-autograd-graph", "shared", 0);
    const shared = model.cellsOf([bytecode, other, forward, again, backward], 2);
    assert.deepEqual([shared.get(bytecode.stage).rows, shared.get(other.stage).row], [2, 3]);
  });

  it("the text of a compile", () => {
    const text = model.compileText({ id: "0/0", function: "f", graphOps: 2, seconds: 0.9 });
    assert.equal(text, "0/0 f · 2 ops · 900 ms");
  });

  it("finds a stage by its id and by those of its documents", () => {
    assert.equal(model.stageOf(PIPELINE, "0/0/pass/1"), forward);
    assert.equal(model.stageOf(PIPELINE, "0/0/output-code"), code);
    assert.equal(model.stageOf(PIPELINE, undefined), undefined);
    assert.equal(model.firstChoice(PIPELINE, "0/0/output-code"), code);
    assert.equal(model.firstChoice(PIPELINE, "0/0/gone"), forward, "the first graph");
    assert.equal(model.firstChoice({ stages: [bytecode, code] }, undefined), bytecode);
  });

  it("a stage comes from the one before on its side", () => {
    assert.equal(model.previousOf(PIPELINE, code), forward);
    assert.equal(model.previousOf(PIPELINE, backward), bytecode);
    assert.equal(model.previousOf(PIPELINE, bytecode), undefined);
  });

  it("keys lead along a side and across", () => {
    /** @param {any} from @param {string} key */
    const at = (from, key) => model.neighbour(PIPELINE, from, key);
    assert.equal(at(forward, "ArrowRight"), code);
    assert.equal(at(forward, "ArrowLeft"), bytecode);
    assert.equal(at(bytecode, "ArrowLeft"), undefined);
    assert.equal(at(forward, "ArrowDown"), backward);
    assert.equal(at(backward, "ArrowUp"), forward);
    assert.equal(at(code, "Home"), bytecode);
    assert.equal(at(bytecode, "End"), code);
    assert.equal(at(bytecode, "ArrowRight"), forward);
  });

  it("places of files and of this run's documents lead somewhere", () => {
    assert.deepEqual(model.positionOf(PIPELINE, { uri: "file:///a.py", line: 3 }), { uri: "file:///a.py", line: 3 });
    const uri = `irscope:/${RUN}/0%2F0/pass/1.py`;
    assert.deepEqual(model.positionOf(PIPELINE, { uri, line: 7 }), { stage: "0/0/pass/1", line: 7 });
    assert.equal(model.positionOf(PIPELINE, { uri: "irscope:/other/0/0/bytecode.py", line: 0 }), undefined);
    assert.equal(model.positionOf(PIPELINE, { uri: `irscope:/${RUN}/gone.py`, line: 0 }), undefined);
  });

  it("the search goes round among the stages with a match", () => {
    const found = model.matchesOf(PIPELINE.stages, "MUL");
    assert.deepEqual([...found.keys()], ["0/0/forward-graph", "0/0/output-code"]);
    assert.equal(model.summaryOf(found, "mul"), "4 in 2 stages");
    assert.equal(model.summaryOf(new Map(), "x"), "nothing found");
    assert.equal(model.nextMatch(PIPELINE, undefined, found, 1), forward);
    assert.equal(model.nextMatch(PIPELINE, forward, found, 1), code);
    assert.equal(model.nextMatch(PIPELINE, code, found, 1), forward);
    assert.equal(model.nextMatch(PIPELINE, forward, found, -1), code);
    assert.equal(model.nextMatch(PIPELINE, forward, new Map(), 1), undefined);
  });
});
