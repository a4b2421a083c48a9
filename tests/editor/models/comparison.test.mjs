/** The table of a comparison of pipelines: numbers as people read them, and a dash with the reason where there is none. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/comparison/model");

const NONE = { value: null, why: "Nothing was compiled." };
const NO_TIME = { median: null, low: null, high: null, rounds: 0, why: "It runs as Python." };
const EMPTY = {
  pipeline: "tvm", title: "TVM", run: "", problem: "It failed.", operators: NONE, taken: NONE, fused: NONE, kernels: NONE,
  libraryCalls: NONE, movedBytes: NONE, compileSeconds: NONE, call: NO_TIME, eager: NO_TIME, difference: NONE,
  relativeDifference: NONE, gone: [], left: [], stages: [],
}; // prettier-ignore
/** @param {number} value */
const of = (value, why = "") => ({ value, why });
const FULL = {
  ...EMPTY, pipeline: "inductor", problem: "", operators: of(1234), taken: of(6), fused: of(0), kernels: of(2), libraryCalls: of(1),
  movedBytes: of(3400, "kernels"), compileSeconds: of(1.84), difference: of(1.19e-7), relativeDifference: of(0),
  call: { median: 12.3e-6, low: 11e-6, high: 0.0141, rounds: 9, why: "" },
  eager: { median: 0.06, low: 0.05, high: 0.07, rounds: 9, why: "" },
}; // prettier-ignore

/** @param {string} title @param {any[]} pipelines */
function cells(title, pipelines) {
  return model.rowsOf(pipelines).find((/** @type {any} */ row) => row.title === title).cells;
}

describe("the model of a comparison of pipelines", () => {
  it("has a cell for each pipeline, with units", () => {
    const texts = (/** @type {string} */ title) => cells(title, [FULL, EMPTY])[0].text;
    const shown = ["Operators", "Kernels", "Bytes moved", "Compile time", "Call, median", "quartiles"].map(texts);
    assert.deepEqual(shown, ["1,234", "2", "3.4 kB", "1.8 s", "12.3 µs", "11\u00a0µs – 14.1\u00a0ms"]);
    assert.deepEqual(["fused", "Difference to eager", "relative"].map(texts), ["0", "1.2e-7", "0"]);
  });

  it("has a dash and the reason where there is no number, and says what a number is about", () => {
    for (const row of model.rowsOf([FULL, EMPTY])) {
      assert.equal(row.cells[1].text, "–", row.title);
      assert.notEqual(row.cells[1].why, "", row.title);
    }
    assert.deepEqual(cells("Call, median", [EMPTY]), [{ text: "–", why: "It runs as Python." }]);
    assert.deepEqual(cells("Bytes moved", [FULL]), [{ text: "3.4 kB", why: "by kernels" }]);
    assert.equal(cells("quartiles", [FULL])[0].why, "of 9 rounds");
    const cases = [FULL, { ...FULL, problem: "It crashed." }, EMPTY, { ...EMPTY, problem: "" }];
    assert.deepEqual(cases.map(model.hasFigures), [true, true, false, true]);
  });

  it("groups stages by compile, and says the same place once", () => {
    const stages = ["0/0", "1/0", "0/0"].map((compile, at) => ({ compile, title: `s${at}`, uri: "" }));
    const groups = model.stagesOf({ ...EMPTY, stages });
    assert.deepEqual(
      groups.map((/** @type {any} */ { heading, stages }) => [heading, stages.length]),
      [
        ["0/0", 2],
        ["1/0", 1],
      ],
    );
    assert.equal(model.stagesOf({ ...EMPTY, stages: stages.slice(0, 1) })[0].heading, "");
    const place = { what: "add", why: "", place: { uri: "file:///a.py", line: 4 } };
    const other = { ...place, place: { uri: "file:///a.py", line: 5 } };
    assert.deepEqual(model.placesOf([place, other, place]), [
      { place, count: 2 },
      { place: other, count: 1 },
    ]);
  });
});
