/** How the graph panel folds a graph, what it opens first, and what it writes; without an editor. */

import assert from "node:assert/strict";
import * as path from "node:path";
import * as esbuild from "esbuild";
import { ROOT } from "../../../scripts/lib/paths.mjs";

const ENTRY = `
export * from "./clusters";
export * from "./colours";
export * from "./dot";
export * from "./model";
export * from "./navigation";
export * from "./pens";
export * from "./scene";
export * from "./search";
export { inputName } from "./labels";
`;

/** @type {any} */
let graph;

/**
 * A graph as the server sends it. A node is `[name, op, inputs, module?, more?]`.
 * @param {[string, string, string[], string?, Record<string, unknown>?][]} nodes
 */
function modelOf(nodes) {
  const ops = [...new Set(nodes.map(([, op]) => op))];
  const modules = [
    ...new Set(nodes.flatMap(([, , , module]) => (module === undefined || module === "?" ? [] : [module]))),
  ];
  const number = new Map(nodes.map(([name], at) => [name, at]));
  const column = (/** @type {(node: any) => unknown} */ value) => nodes.map(value);
  return new graph.Model({
    title: "T",
    stageUri: "irscope:/r/s.py",
    beforeUri: null,
    compareWith: null,
    versions: [],
    nodes: {
      name: column(([name]) => name),
      kind: column(([, op]) => ({ placeholder: 0, get_attr: 1, output: 3 })[/** @type {string} */ (op)] ?? 2),
      op: column(([, op]) => ops.indexOf(op)),
      detail: column(() => 0),
      dtype: column(() => 0),
      device: column(() => 0),
      bytes: column(([, , , , more]) => more?.bytes ?? null),
      moved: column(() => null),
      flops: column(() => null),
      micros: column(() => null),
      module: column(([, , , module]) => (module === "?" ? -2 : module === undefined ? -1 : modules.indexOf(module))),
      backward: column(([, , , , more]) => more?.backward ?? 0),
      line: nodes.map((_, at) => at),
      file: column(() => 0),
      originLine: column(() => 7),
    },
    edges: nodes.flatMap(([, , inputs], to) => inputs.flatMap((input) => [number.get(input), to])),
    ops,
    details: ["f32[2]"],
    dtypes: ["f32"],
    devices: ["cpu"],
    modules: modules.map((module) => ({ path: module.split("."), type: "M" })),
    files: ["file:///a%20b.py"],
    timeOf: "x",
  });
}

/** The tree as text: `outer(a inner(b c))`. @param {any} model @param {any} forest */
function shown(model, forest, cluster = forest.root) {
  /** @type {string[]} */
  const parts = cluster.children.map((/** @type {number} */ item) => {
    const child = forest.clusters[item - model.count];
    return child === undefined ? model.name(item) : `${child.name}(${shown(model, forest, child)})`;
  });
  return parts.join(" ");
}

describe("a graph is folded", () => {
  before(async () => {
    const built = await esbuild.build({
      stdin: { contents: ENTRY, resolveDir: path.join(ROOT, "extension", "src", "graph"), loader: "ts" },
      bundle: true,
      write: false,
      format: "esm",
    });
    const text = built.outputFiles[0]?.text ?? "";
    graph = await import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`);
  });

  it("by module, with chains as one and nothing around a single node", () => {
    const model = modelOf([
      ["x", "placeholder", []],
      ["a", "mm", ["x"], "net.enc.layer.0"],
      ["b", "relu", ["a"], "net.enc.layer.0"],
      ["c", "mm", ["b"], "net.enc.layer.1"],
      ["d", "relu", ["c"], "net.enc.layer.1"],
      ["e", "sum", ["d"], "net.head"],
      ["output", "output", ["e"]],
    ]);
    assert.equal(shown(model, graph.fold(model, "module")), "x net(enc.layer(0(a b) 1(c d)) e) output");
  });

  it("with parameters where they are used, and what a pass made between its neighbours", () => {
    const model = modelOf([
      ["l_x_", "placeholder", []],
      ["l_self_modules_0_parameters_weight_", "placeholder", []],
      ["a", "mm", ["l_x_", "l_self_modules_0_parameters_weight_"], "net.0"],
      ["made", "view", ["a"], "?"],
      ["b", "relu", ["made"], "net.0"],
      ["mine", "mul", ["b"]],
      ["output", "output", ["mine"]],
    ]);
    const tree = shown(model, graph.fold(model, "module"));
    assert.equal(tree, "l_x_ net.0(l_self_modules_0_parameters_weight_ a made b) mine output");
    assert.equal(graph.inputName("l_self_modules_0_parameters_weight_"), "weight");
  });

  it("with the backward of a joint graph apart, but not where there is nothing else", () => {
    const nodes = (/** @type {number} */ forward) =>
      modelOf([
        ["a", "mm", [], "net", { backward: forward }],
        ["b", "mm", ["a"], "net", { backward: forward }],
        ["c", "mm", ["b"], "net", { backward: 1 }],
        ["d", "mm", ["c"], "net", { backward: 1 }],
      ]);
    const [joint, backward] = [nodes(0), nodes(1)];
    assert.equal(shown(joint, graph.fold(joint, "module")), "net(a b) backward.net(c d)");
    assert.equal(shown(backward, graph.fold(backward, "module")), "net(a b c d)");
  });

  it("by kernel: what is in none stands with what reads it", () => {
    const model = modelOf([
      ["x", "placeholder", []],
      ["a", "mm", ["x"]],
      ["v", "view", ["a"]],
      ["b", "relu", ["v"]],
      ["c", "add", ["b"]],
      ["output", "output", ["c"]],
    ]);
    const calls = ["extern.mm", "fused", "fused"].map((name, at) => ({ name, call: at === 2 ? 2 : 1, place: null }));
    model.setKernels({ calls, nodes: [[], [0], [], [1], [2], []] });
    // x goes with the one kernel that reads it, so that is two nodes; a cluster of one node is none.
    assert.equal(shown(model, graph.fold(model, "kernel")), "extern.mm(x a) fused #1(v b) c output");
  });

  it("so that no cluster has more children than can be laid out at once, and every node is in it once", () => {
    /** @type {[string, string, string[]][]} */
    const nodes = Array.from({ length: 50_000 }, (_, at) => [`n${at}`, "add", at === 0 ? [] : [`n${at - 1}`]]);
    const model = modelOf(nodes);
    const forest = graph.fold(model, "order");
    assert.ok(forest.clusters.every((/** @type {any} */ each) => each.children.length <= graph.MOST_CHILDREN));
    assert.equal(new Set(forest.order).size, 50_000);
    for (const cluster of forest.clusters) {
      const inside = cluster.children.reduce((/** @type {number} */ all, /** @type {number} */ item) => {
        const child = forest.clusters[item - model.count];
        return all + (child === undefined ? 1 : child.last - child.first);
      }, 0);
      assert.equal(inside, cluster.last - cluster.first, cluster.key);
    }
    const keys = forest.clusters.map((/** @type {any} */ each) => each.key);
    assert.equal(new Set(keys).size, keys.length, "a key names one cluster");
    const open = graph.openAtFirst(forest, model.count, 110);
    const visible = [...open].reduce((all, item) => all + forest.clusters[item - model.count].children.length, 0);
    assert.ok(visible <= 110, `${visible} boxes at first`);
  });

  it("edges between clusters are one, with their count, and those inside are left out", () => {
    const model = modelOf([
      ["a", "mm", [], "p"],
      ["b", "mm", ["a"], "p"],
      ["c", "mm", ["a", "b"], "q"],
      ["d", "mm", ["b", "c"], "q"],
    ]);
    const forest = graph.fold(model, "module");
    const [p, q] = forest.root.children;
    assert.deepEqual(graph.linksIn(model, forest, forest.root), [{ from: p, to: q, count: 3 }]);
    const inner = forest.clusters[q - model.count];
    assert.deepEqual(graph.linksIn(model, forest, inner), [{ from: 2, to: 3, count: 1 }]);
    assert.deepEqual(
      graph.pathOf(forest, model.count, 3).map((/** @type {any} */ each) => each.name),
      ["q"],
    );
  });

  it("what comes back from a later cluster is no edge inside", () => {
    const model = modelOf([
      ["a", "mm", [], "p"],
      ["c", "mm", ["a"], "q"],
      ["d", "mm", ["c"], "q"],
      ["b", "mm", ["d"], "p"],
      ["e", "mm", ["b"], "p"],
    ]);
    const forest = graph.fold(model, "module");
    const p = forest.clusters.find((/** @type {any} */ each) => each.name === "p");
    assert.deepEqual(graph.linksIn(model, forest, p), [{ from: 3, to: 4, count: 1 }]);
  });

  it("layers of one kind are opened together or not at all", () => {
    /** @type {[string, string, string[], string][]} */
    const nodes = Array.from({ length: 60 }, (_, at) => [
      `n${at}`,
      "mm",
      at === 0 ? [] : [`n${at - 1}`],
      `net.layer.${Math.floor(at / 10)}`,
    ]);
    const model = modelOf(nodes);
    const forest = graph.fold(model, "module");
    const names = (/** @type {number} */ most) =>
      [...graph.openAtFirst(forest, model.count, most)]
        .slice(1)
        .map((item) => forest.clusters[item - model.count].name);
    assert.deepEqual(names(30), ["net.layer"]);
    assert.deepEqual(names(80), ["net.layer", "0", "1", "2", "3", "4", "5"]);
  });

  it("a search looks at one fact or at all, and counts in clusters", () => {
    const model = modelOf([
      ["relu_1", "aten.relu", [], "net.a"],
      ["x", "aten.mm", ["relu_1"], "net.a"],
      ["y", "aten.relu", ["x"], "net.b"],
      ["z", "aten.add", ["y"], "net.b"],
    ]);
    const forest = graph.fold(model, "module");
    const search = new graph.Search(model, forest);
    search.start("RELU");
    assert.deepEqual(search.matches, [0, 2]);
    search.start("op:relu module:net.b");
    assert.deepEqual(search.matches, [2]);
    const [a, b] = forest.clusters.filter((/** @type {any} */ each) => /^[ab]$/.test(each.name));
    assert.deepEqual([search.countIn(a.first, a.last), search.countIn(b.first, b.last)], [0, 1]);
    search.start("nothing:here");
    assert.equal(search.status, "no match");
  });

  it("a line leads to its nodes, however its address is written", () => {
    const model = modelOf([["a", "mm", []]]);
    assert.deepEqual(model.nodesAt("file:///a b.py", 7), [0]);
    assert.deepEqual(model.nodesAt("file:///a%20b.py", 7), [0]);
    assert.deepEqual(model.nodesAt("file:///a%20b.py", 8), []);
    assert.deepEqual(model.nodesAt("irscope:/r/s.py", 0), [0]);
  });

  it("what it exports holds foreign text as text", () => {
    const evil = '"];x[</text><script>alert(1)</script>\\n';
    const model = modelOf([
      [evil, evil, []],
      ["b", "mm", [evil], evil.replaceAll(".", "")],
      ["c", "mm", ["b"], evil.replaceAll(".", "")],
    ]);
    const dot = graph.wholeAsDot(model, graph.fold(model, "module"), evil);
    for (const label of dot.matchAll(/(?:label|tooltip)=("(?:[^"\\]|\\.)*")/g)) {
      assert.doesNotMatch(label[1], /[^\\]"./, "no quote ends it early");
    }
    assert.equal(dot.match(/->/g)?.length, 2);
    const pen = new graph.SvgPen();
    pen.text(`${evil}\u0000`, 0, 0, { size: 10, colour: "red", font: 'x" onload="y' });
    const svg = pen.finish(10, 10, "#000", evil);
    assert.doesNotMatch(svg, /<script|onload="|\u0000/);
    assert.match(svg, /&#60;script&#62;/);
  });

  it("arrow keys follow wires, and leave a cluster where they end", () => {
    const box = (/** @type {string} */ name, /** @type {number} */ x, /** @type {number} */ y) => ({
      name,
      x,
      y,
      width: 10,
      height: 10,
      children: [],
      wires: [],
      parent: undefined,
    });
    /** @type {any} */
    const root = box("root", 0, 0);
    const [outer, next, a, b] = [box("outer", 0, 0), box("next", 0, 100), box("a", 0, 20), box("b", 20, 20)];
    Object.assign(root, { children: [outer, next], wires: [{ from: outer, to: next }] });
    Object.assign(outer, { parent: root, children: [a, b] });
    Object.assign(next, { parent: root });
    Object.assign(a, { parent: outer });
    Object.assign(b, { parent: outer });
    assert.equal(graph.neighbour(a, "right"), b);
    assert.equal(graph.neighbour(b, "right"), undefined);
    assert.equal(graph.neighbour(a, "down"), next, "the cluster's own wire");
    assert.equal(graph.neighbour(next, "up"), outer);
    assert.equal(graph.edgeOf(a, "last"), a);
  });

  it("sizes differ by orders of magnitude, and so do the steps of the scale", () => {
    const model = modelOf([
      ["a", "mm", [], "m", { bytes: 1 }],
      ["b", "mm", [], "m", { bytes: 1000 }],
      ["c", "mm", [], "m", { bytes: 100_000 }],
      ["d", "mm", [], "m", { bytes: 0 }],
    ]);
    const colours = graph.colouring(model, "bytes", "dark");
    assert.deepEqual([0, 1, 2, 3].map(colours.of), [0, 2, 4, -1]);
    assert.equal(colours.text(2), "100 kB");
  });
});
