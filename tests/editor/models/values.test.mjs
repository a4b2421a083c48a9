/** A value as a picture, as data. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/values/model");

/** A tensor of 3 × 8 × 100, of which the first slice is shown; a cell is one row and 10 columns. */
const PICTURE = {
  shape: [3, 8, 100],
  dtype: "float32",
  rows: 1,
  columns: 2,
  index: [0, 0, 0],
  window: [0, 0, 8, 100],
  size: [8, 10],
  extent: [8, 100],
  cell: "mean",
  cells: Array.from({ length: 80 }, (_, at) => (at === 11 ? null : at / 8)),
  nan: [11],
  posinf: [],
  neginf: [12],
  statistics: { count: 800, min: 0, max: 9.87654321, mean: 1.5, std: null, nan: 10, posinf: 0, neginf: "1", zeros: 1 },
};

describe("the model of values", () => {
  it("says which elements a cell is, and their value", () => {
    assert.equal(model.cellText(PICTURE, 0, 1), "[0, 0, 10–19] = 0.125");
    assert.equal(model.cellText(PICTURE, 1, 1), "[0, 1, 10–19] = NaN");
    assert.match(model.cellText(PICTURE, 1, 2), /^\[0, 1, 20–29\] = 1\.5, /);
    const lone = {
      ...PICTURE,
      shape: [8],
      index: [0],
      rows: 1,
      columns: 0,
      window: [0, 0, 1, 8],
      size: [1, 8],
      nan: [],
    };
    assert.equal(model.cellText(lone, 0, 3), "[3] = 0.375");
    assert.equal(model.cellText({ ...lone, shape: [], index: [] }, 0, 0), "[] = 0");
  });

  it("says which part is shown", () => {
    assert.equal(model.partText(PICTURE), "8 × 100; a cell is the mean of its elements");
    const part = { ...PICTURE, window: [2, 10, 4, 20], size: [2, 10] };
    assert.equal(model.partText(part), "rows 2–3, columns 10–19 of 8 × 100");
    assert.equal(model.isWhole(PICTURE), true);
    assert.equal(model.isWhole(part), false);
    assert.deepEqual(model.wholeOf(part), [0, 0, 8, 100]);
    assert.equal(model.shapeOf(PICTURE), "float32[3, 8, 100]");
  });

  it("zooms around a cell and stays inside", () => {
    assert.deepEqual(model.zoomed(PICTURE, 0, 0, 2), [0, 0, 4, 50]);
    assert.deepEqual(model.zoomed(PICTURE, 4, 5, 2), [3, 30, 7, 80]);
    assert.deepEqual(model.zoomed(PICTURE, 7, 9, 100), [4, 93, 8, 97], "four elements at least");
    assert.deepEqual(model.zoomed(PICTURE, 3, 3, 0.5), [0, 0, 8, 100]);
  });

  it("a dimension changes places with the one that was there", () => {
    const kept = { index: [0, 0, 0], cell: "mean" };
    assert.deepEqual(model.turned(PICTURE, "rows", 0), { ...kept, rows: 0, columns: 2 });
    assert.deepEqual(model.turned(PICTURE, "rows", 2), { ...kept, rows: 2, columns: 1 });
    assert.deepEqual(model.turned(PICTURE, "columns", 1), { ...kept, columns: 1, rows: 2 });
    assert.deepEqual(model.cutDimensions(PICTURE), [{ at: 0, size: 3, index: 0 }]);
  });

  it("statistics in few digits; what is not finite alarms", () => {
    const rows = model.statistics(PICTURE);
    const texts = Object.fromEntries(rows.map((/** @type {any} */ { name, text }) => [name, text]));
    assert.deepEqual(texts, {
      Smallest: "0", Largest: "9.8765", Mean: "1.5", Deviation: "–", Zeros: "1", NaN: "10", "+∞": "0", "−∞": "1",
    }); // prettier-ignore
    const alarming = rows.filter((/** @type {any} */ row) => row.alarming);
    assert.deepEqual(
      alarming.map((/** @type {any} */ { name }) => name),
      ["NaN", "−∞"],
    );
  });

  it("a few outliers can be seen in the histogram", () => {
    const [empty, few, most] = model.bars([0, 1, 10_000]);
    assert.deepEqual([empty.height, most.height, most.y], [0, 30, 0]);
    assert.equal(few.height, 0.4);
  });

  it("a chosen comparison is told from what was typed", () => {
    assert.equal(model.isCompared("compiled - eager"), true);
    assert.equal(model.isCompared("mm_1.abs()"), false);
  });
});
