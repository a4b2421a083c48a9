/** The memory plan of a graph as data. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const memory = await load("panels/memory/model");

/** @param {string} name @param {number} bytes @param {number} first @param {number} last */
const buffer = (name, bytes, first, last, category = "temporary") => ({ name, bytes, first, last, category });

const PLAN = {
  steps: ["k0", "k1", "k2"],
  live: [100, 350, 300],
  peak: 1,
  buffers: [
    buffer("a", 100, 0, 1),
    buffer("b", 250, 1, 2, "returned"),
    buffer("c", 50, 2, 9, "kept"),
    buffer("view", 999, 0, 2, "borrowed"),
  ],
};

describe("the model of memory plans", () => {
  it("adds up bytes by category at each step; a buffer may outlive the schedule", () => {
    const by = Object.fromEntries(memory.liveBy(PLAN));
    assert.deepEqual(by, { kept: [0, 0, 50], returned: [0, 250, 250], temporary: [100, 100, 0] });
  });

  it("draws the categories on top of each other", () => {
    const [kept, returned, temporary] = memory.areaPaths(PLAN);
    assert.deepEqual([kept.category, returned.category, temporary.category], ["kept", "returned", "temporary"]);
    assert.match(
      temporary.path,
      /^M0 1000L0\.00 714\.3L333\.33 714\.3L333\.33 0\.0L666\.67 0\.0/,
      "the peak is the top",
    );
    assert.match(temporary.path, /L0\.00 1000\.0Z$/, "and it ends where the one below it begins");
  });

  it("what is held at a step, the largest first, without what only borrows", () => {
    const at = memory.atStep(PLAN, 1);
    assert.deepEqual(
      at.largest.map((/** @type {any} */ { name }) => name),
      ["b", "a"],
    );
    assert.deepEqual([at.step, at.kernel, at.live, at.isPeak, at.count], [1, "k1", 350, true, 2]);
    assert.equal(memory.spoken(PLAN, at), "Call 2 of 3, k1, 350 B");
    assert.equal(memory.atStep(PLAN, -5).step, 0);
    assert.equal(memory.atStep(PLAN, 99).step, 2);
    assert.equal(memory.atStep(PLAN, 0).isPeak, false);
  });

  it("adds up the buffers that have no row", () => {
    const many = Array.from({ length: 203 }, (_, at) => buffer(`b${at}`, at + 1, 0, 0));
    const at = memory.atStep({ ...PLAN, buffers: many }, 0);
    assert.deepEqual([at.count, at.largest.length, at.rest], [203, 200, { count: 3, bytes: 6 }]);
  });

  it("of a measured step shows what is not held at the peak, too, and where it is", () => {
    const step = { ...PLAN, measured: true, steps: ["0 %", "50 %", "100 %"], live: [400, 350, 300] };
    assert.deepEqual(memory.liveBy(step).get("others"), [300, 0, 0]);
    assert.deepEqual(
      memory.legendOf(step).map((/** @type {any} */ { category }) => category),
      ["kept", "returned", "temporary", "others"],
    );
    assert.equal(memory.spoken(step, memory.atStep(step, 1)), "At 50 % of the step, 350 B");
    assert.equal(memory.legendOf(PLAN).length, 3, "a plan has no others");
  });

  it("keys of a slider", () => {
    const keys = ["ArrowRight", "ArrowDown", "PageUp", "Home", "End", "a"];
    assert.deepEqual(
      keys.map((key) => memory.stepAt(key, 5, 30)),
      [6, 4, 15, 0, 29, undefined],
    );
  });

  it("names a category in words", () => {
    assert.equal(memory.categoryTitle({ category: "kept" }), "kept for the backward");
    assert.equal(memory.categoryTitle({ category: "else" }), "else");
  });

  it("buffers have the lines that came for their plan", () => {
    const lines = [{ uri: "file:///a.py", line: 3 }];
    const places = { plans: [{ stage: "other", buffers: [] }, { stage: "s", buffers: [{ name: "buf1", places: lines }] }] }; // prettier-ignore
    assert.deepEqual(memory.placesOf({ stage: "s" }, places).get("buf1"), lines);
    assert.equal(memory.placesOf({ stage: "other" }, places).size, 0);
    assert.equal(memory.placesOf({ stage: "s" }, undefined).size, 0, "they come after the chart");
  });
});
