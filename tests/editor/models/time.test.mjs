/** A flame graph as data, with that of compile times. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const time = await load("panels/measures/flame", "panels/measures/tree", "panels/time/parts");

const NOWHERE = { uri: "", line: 0 };
/** @param {string} name @param {number} parent @param {number} whole @param {number} own */
const row = (name, parent, whole, own, kind = "") => ({
  name,
  kind,
  place: NOWHERE,
  parent,
  own: [own],
  whole: [whole],
});
/** Two compiles; in the first Inductor takes half of it, most of that in its code generation. */
const TREE = {
  measures: [{ name: "compile time", unit: "seconds" }],
  leftOut: 0,
  isChange: false,
  rows: [
    row("this run", -1, 20, 0),
    row("f", 0, 10, 1),
    row("dynamo", 1, 4, 4),
    row("compile_fx", 1, 5, 1, "inductor"),
    row("code_gen", 3, 3, 3),
    row("compile_file", 3, 1, 1),
    row("g", 0, 10, 9.999),
    row("dynamo", 6, 0.001, 0.001),
  ],
};
const NOUN = ["phase", "phases"];
const boxes = time.flameBoxes(TREE);
/** @param {string} name */
const box = (name) => boxes.find((/** @type {any} */ each) => each.name === name);

describe("the model of a flame graph", () => {
  it("leaves out what is too narrow, and shows it when zoomed in", () => {
    /** @param {any} whole */
    const names = (whole) => time.drawnBoxes(boxes, whole, 1000).map((/** @type {any} */ each) => each.box.name);
    assert.deepEqual(names(boxes[0]), [
      "this run", "f", "dynamo", "compile_fx", "code_gen", "compile_file", "g",
    ]); // prettier-ignore
    assert.deepEqual(names(box("compile_fx")), [
      "this run", "f", "compile_fx", "code_gen", "compile_file",
    ]); // prettier-ignore
    assert.deepEqual(
      time.drawnBoxes(boxes, box("g"), 100_000).map((/** @type {any} */ each) => each.box.name),
      ["this run", "g", "dynamo"],
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
    const drawn = time.drawnBoxes(boxes, { start: 3, size: 2 }, 1000);
    const rows = drawn.map((/** @type {any} */ each) => [each.box.name, each.left, each.width, each.above]);
    assert.deepEqual(rows, [
      ["this run", 0, 1000, true],
      ["f", 0, 1000, true],
      ["dynamo", 0, 500, false],
      ["compile_fx", 500, 500, false],
      ["code_gen", 500, 500, false],
    ]);
    assert.deepEqual(time.draggedSpan({ start: 10, size: 20 }, 750, 250, 1000), { start: 15, size: 10 });
    assert.deepEqual(time.draggedSpan({ start: 10, size: 20 }, 500, 9999, 1000), { start: 20, size: 10 });
    assert.equal(time.around(boxes, { start: 5, size: 1 })?.name, "code_gen");
    assert.equal(time.around(boxes, box("compile_fx"))?.name, "f");
    assert.equal(time.around(boxes, boxes[0]), undefined);
  });

  it("zooms towards a box, and never out of the whole", () => {
    const [whole] = boxes;
    const once = time.zoomedBy(whole, box("compile_fx"), 0.5, whole);
    assert.deepEqual([once.start, once.size], [1.5, 10]);
    assert.deepEqual(time.zoomedBy(once, box("dynamo"), 0.5, whole), { start: 0, size: 5 });
    assert.deepEqual(time.zoomedBy(once, box("dynamo"), 9, whole), { start: 0, size: 20 });
  });

  it("the ruler has round marks that do not touch", () => {
    const texts = (/** @type {number} */ seconds, /** @type {number} */ width) =>
      time.ticksOf({ start: 7, size: seconds }, width, "seconds").map((/** @type {any} */ tick) => tick.text);
    assert.deepEqual(texts(20, 500), ["0", "5.0 s", "10.0 s", "15.0 s"]);
    assert.deepEqual(texts(0.003, 300), ["0", "1 ms", "2 ms"]);
    assert.deepEqual(texts(301, 1000), ["0", "30.0 s", "1 min 0 s", "1 min 30 s", "2 min 0 s", "2 min 30 s", "3 min 0 s", "3 min 30 s", "4 min 0 s", "4 min 30 s"]); // prettier-ignore
    assert.deepEqual(texts(20, 50), ["0"]);
    assert.deepEqual(texts(0, 500), []);
    assert.equal(time.ticksOf({ start: 0, size: 20 }, 500, "seconds")[1].left, 125);
    const bytes = time.ticksOf({ start: 0, size: 5e6 }, 500, "bytes").map((/** @type {any} */ tick) => tick.text);
    assert.deepEqual(bytes, ["0", "1 MB", "2 MB", "3 MB", "4 MB"]);
  });

  it("finds phases by name and words, and counts what is inside of another once", () => {
    const found = time.matchesOf(boxes, "INDUCTOR");
    assert.deepEqual(
      found.map((/** @type {any} */ each) => each.name),
      ["compile_fx"],
    );
    assert.equal(time.matchText(found, "inductor", NOUN, "seconds"), "1 phase, 5.0 s");
    const all = time.matchesOf(boxes, "co");
    assert.deepEqual(
      all.map((/** @type {any} */ each) => each.name),
      ["compile_fx", "code_gen", "compile_file"],
    );
    assert.equal(time.matchText(all, "co", NOUN, "seconds"), "3 phases, 5.0 s");
    assert.equal(time.matchText([], "x", NOUN, "seconds"), "nothing found");
    assert.equal(time.matchText([], " ", NOUN, "seconds"), "");
  });

  it("boxes have the part of the compiler that they or what is around them belong to", () => {
    assert.deepEqual(boxes.map(time.partOf), [
      "whole", "compile", "dynamo", "inductor", "inductor", "kernels", "compile", "dynamo",
    ]); // prettier-ignore
  });

  it("keys lead up, to the longest inside, and to what is beside, among what is drawn", () => {
    /** @type {(each: any) => boolean} */
    const all = () => true;
    /** @param {string} key @param {string} from */
    const at = (key, from, isDrawn = all) => time.boxAt(key, box(from), boxes, isDrawn)?.name;
    assert.equal(at("ArrowUp", "code_gen"), "compile_fx");
    assert.equal(at("ArrowDown", "f"), "compile_fx");
    assert.equal(at("ArrowRight", "f"), "g");
    assert.equal(at("ArrowLeft", "g"), "f");
    assert.equal(at("ArrowLeft", "f"), undefined);
    assert.equal(at("Home", "code_gen"), "this run");
    assert.equal(at("x", "code_gen"), undefined);
    const drawn = (/** @type {any} */ each) => each.name !== "compile_fx";
    assert.equal(at("ArrowDown", "f", drawn), "dynamo");
  });

  it("draws one of several that only hold each other, with the names of all", () => {
    const rows = [
      row("this run", -1, 8, 0), row("f", 0, 8, 0), row("dynamo", 1, 8, 0, "Dynamo"), row("entire", 2, 8, 0),
      row("inner", 3, 8, 2), row("pass", 4, 6, 6),
    ]; // prettier-ignore
    const drawn = time.flameBoxes({ ...TREE, rows });
    assert.deepEqual(
      drawn.map((/** @type {any} */ each) => [each.name, each.label, each.depth, each.own]),
      [["this run", "", 0, 0], ["f", "", 1, 0], ["dynamo › entire › inner", "Dynamo", 2, 2], ["pass", "", 3, 6]],
    ); // prettier-ignore
    assert.equal(time.partOf(drawn[3]), "dynamo");
  });

  it("of a change is as wide as all that changed, up and down, and says which", () => {
    const rows = [
      row("two runs", -1, -1, 0),
      row("f", 0, 2, 0),
      row("a", 1, 3, 3),
      row("b", 1, -1, -1),
      row("g", 0, -3, -3),
    ];
    const change = { ...TREE, isChange: true, rows };
    const drawn = time.flameBoxes(change);
    assert.deepEqual(
      drawn.map((/** @type {any} */ each) => [each.name, each.start, each.size, time.signOf(each)]),
      [["two runs", 0, 7, "less"], ["f", 0, 4, "more"], ["a", 0, 3, "more"], ["b", 3, 1, "less"], ["g", 4, 3, "less"]],
    ); // prettier-ignore
    assert.deepEqual(time.pathFacts(change, drawn[2]), ["+3.0 s"]);
    assert.deepEqual(time.pathFacts(change, drawn[4]), ["−3.0 s"]);
    assert.equal(time.matchText(time.matchesOf(drawn, "b"), "b", NOUN, "seconds"), "1 phase, −1.0 s");
  });
});
