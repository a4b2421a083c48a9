/** The flame chart of compile times as data. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const time = await load("panels/time/layout", "panels/time/model");

/** Two compiles; in the first Inductor takes half of it, most of that in its code generation. */
const PHASES = {
  names: ["dynamo", "compile_fx", "code_gen", "Scheduler.init", "compile_file"],
  labels: ["", "inductor", "", "", ""],
  compiles: [
    {
      id: "0/0",
      function: "f",
      seconds: 10,
      phases: [
        [0, -1, 0, 4, 4, 0],
        [1, -1, 4, 5, 1, 0],
        [2, 1, 4, 3, 3, 0],
        [3, 1, 7, 1, 1, 0],
        [4, 1, 5, 2, 2, 1],
      ],
    },
    { id: "1/0", function: "g", seconds: 10, phases: [[0, -1, 0, 0.001, 0.001, 0]] },
  ],
  seconds: 20,
};
const boxes = time.layOut(PHASES);
/** @param {string} name */
const box = (name) => boxes.find((/** @type {any} */ each) => each.name === name);

describe("the model of compile times", () => {
  it("leaves out what is too narrow, and shows it when zoomed in", () => {
    /** @param {any} whole */
    const names = (whole) => time.drawnBoxes(boxes, whole, 1000).map((/** @type {any} */ each) => each.box.name);
    assert.deepEqual(names(boxes[0]), [
      "All compiles", "0/0 f", "dynamo", "compile_fx", "code_gen", "Scheduler.init", "compile_file", "1/0 g",
    ]); // prettier-ignore
    assert.deepEqual(names(box("compile_fx")), [
      "All compiles", "0/0 f", "compile_fx", "code_gen", "Scheduler.init", "compile_file",
    ]); // prettier-ignore
    assert.deepEqual(
      time.drawnBoxes(boxes, box("1/0 g"), 100_000).map((/** @type {any} */ each) => each.box.name),
      ["All compiles", "1/0 g", "dynamo"],
    );
  });

  it("what is zoomed in on fills the chart, below what is around it", () => {
    const [whole, compile, inductor, code] = time.drawnBoxes(boxes, box("compile_fx"), 1000);
    assert.deepEqual([whole.left, whole.width, whole.above], [0, 1000, true]);
    assert.equal(compile.above, true);
    assert.deepEqual([inductor.left, inductor.width, inductor.above], [0, 1000, false]);
    assert.deepEqual([code.left, code.width], [0, 600]);
  });

  it("any seconds can be in sight, with what goes on outside of them cut off", () => {
    const drawn = time.drawnBoxes(boxes, { start: 3, seconds: 2 }, 1000);
    const rows = drawn.map((/** @type {any} */ each) => [each.box.name, each.left, each.width, each.above]);
    assert.deepEqual(rows, [
      ["All compiles", 0, 1000, true],
      ["0/0 f", 0, 1000, true],
      ["dynamo", 0, 500, false],
      ["compile_fx", 500, 500, false],
      ["code_gen", 500, 500, false],
    ]);
    assert.deepEqual(time.draggedSpan({ start: 10, seconds: 20 }, 750, 250, 1000), { start: 15, seconds: 10 });
    assert.deepEqual(time.draggedSpan({ start: 10, seconds: 20 }, 500, 9999, 1000), { start: 20, seconds: 10 });
    assert.equal(time.around(boxes, { start: 5, seconds: 1 })?.name, "compile_file");
    assert.equal(time.around(boxes, box("compile_fx"))?.name, "0/0 f");
    assert.equal(time.around(boxes, boxes[0]), undefined);
  });

  it("zooms towards a box, and never out of the whole", () => {
    const [whole] = boxes;
    const once = time.zoomedBy(whole, box("compile_fx"), 0.5, whole);
    assert.deepEqual([once.start, once.seconds], [1.5, 10]);
    assert.deepEqual(time.zoomedBy(once, box("dynamo"), 0.5, whole), { start: 0, seconds: 5 });
    assert.deepEqual(time.zoomedBy(once, box("dynamo"), 9, whole), { start: 0, seconds: 20 });
  });

  it("hides what ran in other threads", () => {
    const names = time.drawnBoxes(boxes, boxes[0], 1000, false).map((/** @type {any} */ each) => each.box.name);
    assert.ok(!names.includes("compile_file") && names.includes("code_gen"));
  });

  it("the ruler has round marks that do not touch", () => {
    const texts = (/** @type {number} */ seconds, /** @type {number} */ width) =>
      time.ticksOf({ start: 7, seconds }, width).map((/** @type {any} */ tick) => tick.text);
    assert.deepEqual(texts(20, 500), ["0", "5.0 s", "10.0 s", "15.0 s"]);
    assert.deepEqual(texts(0.003, 300), ["0", "1 ms", "2 ms"]);
    assert.deepEqual(texts(301, 1000), ["0", "30.0 s", "1 min 0 s", "1 min 30 s", "2 min 0 s", "2 min 30 s", "3 min 0 s", "3 min 30 s", "4 min 0 s", "4 min 30 s"]); // prettier-ignore
    assert.deepEqual(texts(20, 50), ["0"]);
    assert.deepEqual(texts(0, 500), []);
    assert.equal(time.ticksOf({ start: 0, seconds: 20 }, 500)[1].left, 125);
  });

  it("finds phases by name and words, and counts what is inside of another once", () => {
    const found = time.matchesOf(boxes, "INDUCTOR");
    assert.deepEqual(
      found.map((/** @type {any} */ each) => each.name),
      ["compile_fx"],
    );
    assert.equal(time.matchText(found, "inductor"), "1 phase, 5.0 s");
    const all = time.matchesOf(boxes, "co");
    assert.deepEqual(
      all.map((/** @type {any} */ each) => each.name),
      ["compile_fx", "code_gen", "compile_file"],
    );
    assert.equal(time.matchText(all, "co"), "3 phases, 5.0 s");
    assert.equal(time.matchText([], "x"), "nothing found");
    assert.equal(time.matchText([], " "), "");
  });

  it("boxes have the part of the compiler that they or what is around them belong to", () => {
    assert.deepEqual(boxes.map(time.partOf), [
      "whole", "compile", "dynamo", "inductor", "inductor", "inductor", "kernels", "compile", "dynamo",
    ]); // prettier-ignore
  });

  it("says how long, and what share", () => {
    assert.equal(time.spoken(box("compile_fx"), 20), "Inductor 5.0 s, 25 % of all, compile_fx");
    assert.equal(time.spoken(box("code_gen"), 20), "code_gen 3.0 s, 15 % of all");
    assert.deepEqual(time.remarks(box("compile_fx")), ["50 % of 0/0 f", "1.0 s self"]);
    assert.deepEqual(time.remarks(box("compile_file")), ["in another thread"]);
    assert.deepEqual(time.remarks(boxes[0]), []);
  });

  it("keys lead up, to the longest inside, and to what is beside, among what is drawn", () => {
    /** @type {(each: any) => boolean} */
    const all = () => true;
    /** @param {string} key @param {string} from */
    const at = (key, from, isDrawn = all) => time.boxAt(key, box(from), boxes, isDrawn)?.name;
    assert.equal(at("ArrowUp", "code_gen"), "compile_fx");
    assert.equal(at("ArrowDown", "0/0 f"), "compile_fx");
    assert.equal(at("ArrowRight", "0/0 f"), "1/0 g");
    assert.equal(at("ArrowLeft", "1/0 g"), "0/0 f");
    assert.equal(at("ArrowLeft", "0/0 f"), undefined);
    assert.equal(at("Home", "code_gen"), "All compiles");
    assert.equal(at("x", "code_gen"), undefined);
    const drawn = (/** @type {any} */ each) => each.name !== "compile_fx";
    assert.equal(at("ArrowDown", "0/0 f", drawn), "dynamo");
  });
});
