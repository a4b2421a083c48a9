/** Measured time as data: what is above what is possible comes first, and one step has rows for host and device. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/measured/model");
const step = await load("panels/measured/step");
const NO_TREE = { measures: [], rows: [], leftOut: 0, isChange: false };
const tree = await load("panels/measures/tree");

const AT = (/** @type {number} */ line) => ({ uri: "file:///w/train.py", line });
const NOWHERE = { uri: "", line: 0 };
const LINES = [
  {
    place: AT(4),
    seconds: 4e-4,
    shared: 0,
    possible: 3.9e-4,
    refuted: false,
    bound: "compute",
    calls: 2,
    kernels: ["mm"],
  },
  {
    place: AT(5),
    seconds: 1e-4,
    shared: 0,
    possible: 1e-5,
    refuted: false,
    bound: "memory",
    calls: 1,
    kernels: ["relu", "sum"],
  },
  { place: AT(6), seconds: 2e-5, shared: 0, possible: null, refuted: false, bound: "", calls: 1, kernels: ["odd"] },
];
const KERNELS = [
  { name: "mm", uri: "irscope:/r/0/0/output-code.py", seconds: 1e-3, possible: 9e-4, refuted: false, bound: "compute", calls: 2, bytes: 1e6,
    flops: 2e9, places: [AT(4)] },
  { name: "relu", uri: "", seconds: 1e-3, possible: 1e-4, refuted: false, bound: "memory", calls: 1.5, bytes: 2e9, flops: null, places: [] },
]; // prettier-ignore
const WORDS = ["launch", "k", "0/0", "kernel", "", "outside", "python", "guards"];
const PIECES = [
  [0, 0, 10e-6, 5, 5, 4, 0, -1],
  [0, 10e-6, 5e-6, 7, 7, 2, 0, 0],
  [0, 15e-6, 25e-6, 0, 1, 2, 0, 0],
  [0, 40e-6, 20e-6, 6, 6, 2, 1, 0],
  [0, 60e-6, 40e-6, 5, 5, 4, 0, -1],
  [1, 30e-6, 20e-6, 3, 1, 2, 0, 0],
  [1, 45e-6, 15e-6, 3, 1, 2, 1, 0],
];
const DATA = {
  run: "r", step: 8e-4, device: 6e-4, owned: 7.2e-4, profiled: 1e-3, idle: 4e-4, steps: 20, bounds: "the least time on an H100", programs: [],
  lines: LINES, kernels: KERNELS, gaps: [{ kind: "guards", seconds: 8e-5, place: AT(2), where: "/w/train.py:3" },
  { kind: "outside", seconds: 4e-5, place: NOWHERE, where: "" }], modules: NO_TREE, frames: NO_TREE, graphs: { recorded: 0, replayed: 0, skipped: [], recordings: 0, again: [], pools: [] }, costs: [], leftOut: { lines: 0, kernels: 0, gaps: 0 },
  words: WORDS, places: [AT(4)], pieces: PIECES, reason: "",
}; // prettier-ignore

describe("the model of measured time", () => {
  it("puts first what has the most time above what is possible", () => {
    const rows = model.lineRows(DATA);
    assert.deepEqual(
      rows.map((/** @type {any} */ row) => row.name),
      ["train.py:6", "train.py:7", "train.py:5"],
    );
    assert.deepEqual(rows[0].cells, ["100 µs", "13 %", "10 µs", "90 µs", "memory", "1"]);
    assert.deepEqual(rows[1].cells.slice(2, 5), ["", "", ""], "what is possible is not known");
    assert.equal(rows[0].detail, "relu, sum");
    assert.equal(rows[2].share, 0.5);
  });

  it("marks what took less than it could by the peaks", () => {
    const [row] = model.lineRows({ ...DATA, lines: [{ ...LINES[1], possible: 1e-4, refuted: true }] });
    assert.deepEqual(row.cells.slice(2, 4), ["≤ 100 µs", ""]);
  });

  it("says which rate a kernel reaches of what bounds it", () => {
    const [relu, mm] = model.kernelRows(DATA);
    assert.deepEqual([relu.name, relu.detail, relu.place], ["relu", "no line of yours", undefined]);
    assert.deepEqual(relu.cells.slice(-3), ["1.5", "2 GB", "2 TB/s"]);
    assert.deepEqual(mm.cells.slice(-1), ["2 TFLOP/s"]);
    assert.equal(model.achieved({ ...KERNELS[1], seconds: 0 }), "");
  });

  it("names what is between kernels, and what became of CUDA graphs", () => {
    const rows = model.gapRows(DATA);
    assert.deepEqual([rows[0].name, rows[0].cells], ["guards, train.py:3", ["80 µs", "10 %"]]);
    assert.deepEqual([rows[1].name, rows[1].place], ["outside", undefined]);
    assert.deepEqual(model.graphTexts(DATA), []);
    const graphs = { recorded: 0.5, replayed: 2, skipped: [{ why: "mutated inputs", place: AT(6) }],
      recordings: 3, again: [{ compile: "0/0", why: "a static input moved", count: 2 }], pools: [{ pool: "0.1", bytes: 2e6, used: 5e5 }] }; // prettier-ignore
    assert.deepEqual(model.graphTexts({ ...DATA, graphs }), [
      { text: "3 recorded, 2 replayed in a step, 0.5 recorded again in a step, though it was warm", place: undefined },
      { text: "recorded again, 0/0 ×2: a static input moved", place: undefined },
      { text: "memory pool 0.1: 2 MB, 500 kB in use", place: undefined },
      { text: "skipped: mutated inputs", place: AT(6) },
    ]);
    const said = ["kernels 600 µs (75 %)", "device idle 40 %", "90 % attributed", "20 steps measured"];
    assert.deepEqual(model.summary(DATA), said);
    const timed = [...said.slice(0, 3), "lower quartile of 20 steps"];
    assert.deepEqual(model.summary({ ...DATA, programs: ["Net"] }), timed, "timed without the profiler");
  });

  it("draws a step with host and device, and the gaps between kernels with what the host did", () => {
    const boxes = step.stepBoxes(DATA);
    const shown = boxes.map((/** @type {any} */ { name, depth, start, size }) => [
      name, depth, Math.round(start * 1e6), Math.round(size * 1e6),
    ]); // prettier-ignore
    assert.deepEqual(shown, [
      ["One step", 0, 0, 100], ["outside", 1, 0, 10], ["0/0", 1, 10, 30], ["guards", 2, 10, 5], ["k", 2, 15, 25],
      ["0/0 backward", 1, 40, 20], ["python", 2, 40, 20], ["outside", 1, 60, 40], ["Device", 3, 0, 100],
      ["idle", 4, 0, 30], ["k", 4, 30, 20], ["k", 4, 50, 10], ["idle", 4, 60, 40],
    ]); // prettier-ignore
    const idle = boxes.filter((/** @type {any} */ { kind }) => kind === "idle");
    assert.deepEqual(
      idle.map((/** @type {any} */ { label }) => label),
      ["while the host: launch", "while the host: outside"],
    );
    assert.equal(step.groupOf(idle[0]), "idle");
    assert.equal(step.titleOf(boxes[4]), "launch", "a launch is named so, not by its kernel");
    assert.match(step.spoken(boxes[10], boxes[0]), /^k 20 µs, 20 % of the step, kernel$/);
    const alone = step.stepBoxes({ ...DATA, pieces: PIECES.filter(([row]) => row === 0) });
    assert.ok(!alone.some((/** @type {any} */ { kind }) => kind === "device"), "a CPU has no device row");
    assert.deepEqual(step.stepBoxes({ ...DATA, pieces: [] }), []);
  });

  it("what a break and a recompilation take leads to its place", () => {
    const place = { uri: "file:///a.py", line: 6 };
    const costs = [
      { what: "graph-break", name: "GB0025", words: "at least 5 µs of a step", place },
      { what: "recompilation", name: "f", words: "compiled 3 times", place: NOWHERE },
    ];
    assert.deepEqual(model.costTexts({ costs }), [
      { text: "Graph break GB0025: at least 5 µs of a step", place },
      { text: "f was compiled 3 times", place: undefined },
    ]);
  });
});

describe("the flame graph of modules", () => {
  const MEASURES = [
    { name: "time", unit: "seconds" },
    { name: "bound", unit: "seconds" },
    { name: "moved", unit: "bytes" },
  ];
  const SHARE = { title: "% of step", whole: 20 };
  const node = (/** @type {any} */ { seconds, own = 0, possible = 0, bytes = 0, ...more }) => ({
    kind: "",
    place: NOWHERE,
    own: [own, 0, 0],
    whole: [seconds, possible, bytes],
    ...more,
  });
  const treeOf = (/** @type {any[]} */ rows) => ({ measures: MEASURES, rows, leftOut: 0, isChange: false });
  const NODES = [
    node({ name: "step", parent: -1, seconds: 10, own: 1 }),
    node({ name: "Net", kind: "Net", parent: 0, seconds: 9 }),
    node({ name: "layers.0", kind: "Layer", parent: 1, seconds: 4, own: 4, possible: 2, bytes: 1e6 }),
    node({ name: "layers.1", kind: "Layer", parent: 1, seconds: 5, own: 2 }),
    node({ name: "mlp", kind: "MLP", parent: 3, seconds: 3, own: 3, place: AT(4) }),
  ];

  it("has boxes inside each other, one after the other", () => {
    const boxes = tree.pathBoxes(treeOf(NODES));
    assert.deepEqual(
      boxes.map((/** @type {any} */ box) => [box.name, box.start, box.depth, box.children.length]),
      [["step", 0, 0, 1], ["Net", 0, 1, 2], ["layers.0", 0, 2, 0], ["layers.1", 4, 2, 1], ["mlp", 4, 3, 0]],
    ); // prettier-ignore
    assert.deepEqual(tree.pathBoxes(treeOf(NODES.slice(0, 1))), [], "a profile without paths");
  });

  it("is a tree of rows, too, open around the parts with most time", () => {
    const boxes = tree.pathBoxes(treeOf(NODES));
    const open = tree.openAtFirst(boxes);
    const shown = () =>
      tree
        .pathRows(treeOf(NODES), boxes, open, SHARE)
        .map((/** @type {any} */ row) => [row.name, row.depth, row.isOpen]);
    assert.deepEqual(shown(), [
      ["step", 0, true], ["Net", 1, true], ["layers.1", 2, true], ["mlp", 3, undefined], ["layers.0", 2, undefined],
    ]); // prettier-ignore
    open.delete(1);
    assert.deepEqual(shown(), [
      ["step", 0, true],
      ["Net", 1, false],
    ]);
    open.add(1);
    const [, , , , layer] = tree.pathRows(treeOf(NODES), boxes, open, SHARE);
    assert.deepEqual(layer.cells, ["4.0 s", "20 %", "4.0 s", "2.0 s", "1 MB"]);
    const many = Array.from({ length: 30 }, (_, at) => node({ name: `m${at}`, parent: at, seconds: 30 - at }));
    const longer = treeOf([node({ name: "step", parent: -1, seconds: 31 }), ...many]);
    const deep = tree.pathBoxes(longer);
    assert.equal(tree.pathRows(longer, deep, tree.openAtFirst(deep), SHARE).length, 20);
    const nothing = NODES.map((each) => ({ ...each, whole: [0, 0, 0] }));
    assert.deepEqual(tree.pathBoxes(treeOf(nothing)), [], "nothing was measured");
  });

  it("has a column for each measure, whatever its unit", () => {
    const counts = [
      { name: "kernels", unit: "count" },
      { name: "compile time", unit: "seconds" },
    ];
    const rows = [
      { name: "this run", kind: "", place: NOWHERE, parent: -1, own: [0, 0], whole: [7, 1.5] },
      { name: "Net", kind: "", place: NOWHERE, parent: 0, own: [7, 1.5], whole: [7, 1.5] },
    ]; // prettier-ignore
    const counted = { measures: counts, rows, leftOut: 0, isChange: false };
    const boxes = tree.pathBoxes(counted);
    assert.deepEqual(tree.treeColumns(counted), ["Kernels", "Compile Time"]);
    assert.deepEqual(tree.treeColumns(treeOf(NODES), SHARE), ["Time", "% of step", "Own", "Possible", "Moved"]);
    const [, net] = tree.pathRows(counted, boxes, tree.openAtFirst(boxes));
    assert.deepEqual(net.cells, ["7", "1.5 s"]);
  });

  it("says what each took, and colours modules of one class alike", () => {
    const [whole, net, first, second] = tree.pathBoxes(treeOf(NODES));
    assert.equal(tree.pathTitle(net), "Net");
    const facts = (/** @type {any} */ box) => tree.pathFacts(treeOf(NODES), box, SHARE);
    assert.deepEqual(facts(first), ["4.0 s 20 % of step", "possible 2.0 s", "moved 1 MB"]);
    assert.deepEqual(facts(second), ["5.0 s 25 % of step", "own 2.0 s"]);
    assert.equal(tree.toneOf(first), tree.toneOf(second));
    assert.equal(tree.toneOf(whole), "whole");
  });
});
