/** What changed since an earlier run as rows. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/changes/model");

const NONE = {
  findingsGone: [], findingsNew: [], findingsKept: 3,
  compilesGone: [], compilesNew: [], compilesChanged: [], compilesSame: 2,
  kernelsGone: [], kernelsNew: [], kernelsChanged: [], kernelsKept: 1,
  compileSeconds: null, seconds: null, measured: null, choicesChanged: [], older: [],
}; // prettier-ignore

describe("the model of changes", () => {
  it("of the findings what is new comes first; else what is gone, what is new, what changed", () => {
    const sections = model.sectionsOf({
      ...NONE,
      findingsGone: ["f1"],
      findingsNew: ["f2"],
      compilesChanged: ["c3"],
      compilesGone: ["c1"],
      kernelsNew: ["k2"],
    });
    const shown = sections.map((/** @type {any} */ { title, kept, rows }) => [
      title,
      kept,
      ...rows.map((/** @type {any} */ { sign, item }) => `${model.SIGNS[sign]}${item}`),
    ]);
    assert.deepEqual(shown, [
      ["Findings", "3 kept", "+f2", "−f1"],
      ["Compiles", "2 the same", "−c1", "~c3"],
      ["Kernels", "1 kept", "+k2"],
    ]);
  });

  it("only findings are good or bad news", () => {
    assert.deepEqual(model.wordOf({ what: "finding", sign: "gone" }), { word: "fixed", tone: "better" });
    assert.deepEqual(model.wordOf({ what: "finding", sign: "new" }), { word: "new", tone: "worse" });
    const other = { isOtherPipeline: true };
    assert.deepEqual(model.wordOf({ what: "finding", sign: "gone", ...other }), { word: "gone", tone: "" });
    assert.deepEqual(model.wordOf({ what: "kernel", sign: "gone" }), { word: "gone", tone: "" });
    assert.equal(model.wasAt({ place: { uri: "file:///a/b%20c.py", line: 4 } }), "was at b c.py:5");
  });

  it("times before and after share a scale", () => {
    const [compile, whole] = model.timeChanges({ ...NONE, compileSeconds: [119.7, 60], seconds: [1, 2] });
    assert.deepEqual([compile.title, compile.by, compile.isBetter], ["compile time", "−59.7 s", true]);
    assert.deepEqual(compile.before, { text: "2 min 0 s", share: 1 });
    assert.deepEqual([whole.by, whole.isBetter, whole.before.share], ["+1.0 s", false, 0.5]);
    assert.deepEqual(model.timeChanges(NONE), []);
  });

  it("measured time and autotuning are sections where there is something to tell", () => {
    const line = { place: { uri: "file:///a.py", line: 4 }, before: 0.002, after: 0.0015 };
    const [, , , measured, tuned] = model.sectionsOf({
      ...NONE,
      measured: {
        before: 0.01,
        after: 0.009,
        isSignificant: false,
        words: "no difference above the noise",
        lines: [line],
      },
      choicesChanged: [{ operator: "mm", place: line.place, before: "a", after: "b" }],
    });
    assert.deepEqual(
      [measured.title, measured.kept],
      ["Measured time", "10 ms → 9 ms a step: no difference above the noise"],
    );
    assert.equal(model.lineChange(line), "2 ms → 1.5 ms (−500 µs)");
    assert.deepEqual(model.wordOf(measured.rows[0]), { word: "faster", tone: "better" });
    const slower = { what: "line", sign: "changed", item: { ...line, after: 1 } };
    assert.deepEqual(model.wordOf(slower), { word: "slower", tone: "worse" });
    assert.deepEqual([tuned.title, tuned.kept, tuned.rows.length], ["Autotuning", "1 operator with another choice", 1]);
  });

  it("an earlier run is told by its time, findings and duration", () => {
    const [option] = model.olderRuns({ ...NONE, older: [{ run: "r", started: 0, findings: 1, seconds: 0.5 }] });
    assert.equal(option.value, "r");
    assert.match(option.text, /^.+ · 1 finding · 500 ms$/);
  });
});
