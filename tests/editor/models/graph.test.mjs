/** How the graph panel folds a graph, what it opens first, and what it writes; without an editor. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const MODULES = [
  "graph/model/estimates",
  "panels/ahead",
  ...["clusters", "grouping", "links", "model", "search"].map((name) => `graph/model/${name}`),
  ...["far", "scene"].map((name) => `graph/layout/${name}`),
  ...["colours", "dot", "labels", "names", "pens"].map((name) => `graph/draw/${name}`),
  ...["navigation", "opening"].map((name) => `graph/page/${name}`),
];

/** @type {any} */
let graph;

/**
 * A graph as the server sends it. A node is `[name, op, inputs, module?, more?]`; one without a module may have a
 * `home`, the module that it is drawn in.
 * @param {[string, string, string[], string?, Record<string, unknown>?][]} nodes
 */
function modelOf(nodes) {
  const ops = [...new Set(nodes.map(([, op]) => op))];
  const modules = [...new Set(nodes.flatMap(([, , , module, more]) => [module, more?.home].filter(isText)))];
  /** @type {string[][]} */
  const originals = [];
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
      original: column(([, , , , more]) => (more?.originals === undefined ? -1 : originals.push(more.originals) - 1)),
      detail: column(() => 0),
      dtype: column(() => 0),
      device: column(() => 0),
      bytes: column(([, , , , more]) => more?.bytes ?? null),
      moved: column(() => null),
      flops: column(() => null),
      module: column(([, , , module]) => modules.indexOf(module)),
      home: column(([, , , module, more]) => modules.indexOf(module ?? more?.home)),
      backward: column(([, , , , more]) => more?.backward ?? 0),
      line: nodes.map((_, at) => at),
      file: column(() => 0),
      originLine: column(() => 7),
    },
    edges: nodes.flatMap(([, , inputs], to) => inputs.flatMap((input) => [number.get(input), to])),
    ops,
    originals,
    details: ["f32[2]"],
    dtypes: ["f32"],
    devices: ["cpu"],
    modules: modules.map((path) => ({
      path: path === "" ? [] : path.split("."),
      type: path.endsWith("layers") ? "" : "M",
    })), // A list is not called.
    files: ["file:///a%20b.py"],
    targets: [],
  });
}

const isText = (/** @type {unknown} */ value) => typeof value === "string";

/** The tree as text: `outer(a inner(b c))`. @param {any} model @param {any} forest */
function shown(model, forest, cluster = forest.root) {
  /** @type {string[]} */
  const parts = cluster.children.map((/** @type {number} */ item) => {
    const child = forest.clusters[item - model.count];
    return child === undefined ? model.name(item) : `${child.name}(${shown(model, forest, child)})`;
  });
  return parts.join(" ");
}

describe("a node of a graph", () => {
  it("has the symbolic sizes of its own type", async () => {
    graph = await load(...MODULES);
    const model = modelOf([["x", "placeholder", []]]);
    model.graph.details = ["f32[s17, (s2//4)]"];
    model.graph.symbols = ["s1", "s17", "s2"].map((name) => ({ name, source: "", text: "" }));
    assert.deepEqual(
      model.symbols(0).map((/** @type {{name: string}} */ { name }) => name),
      ["s17", "s2"],
    );
  });
});

describe("a graph is folded", () => {
  before(async () => {
    graph = await load(...MODULES);
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

  it("with layers that repeat as one, and each call of a module apart", () => {
    const layer = (/** @type {number} */ at, /** @type {string} */ path) => [
      [`a${at}`, "mm", at === 0 ? ["x"] : [`b${at - 1}`], path],
      [`b${at}`, "relu", [`a${at}`], path],
    ];
    const model = modelOf(
      /** @type {any} */ ([
        ["x", "placeholder", []],
        ...layer(0, "net.layers.0"),
        ...layer(1, "net.layers.1"),
        ...layer(2, "net.layers.2"),
        ...layer(3, "net.norm"),
        ...layer(4, "net.norm@1"),
      ]),
    );
    const forest = graph.fold(model, "module");
    assert.equal(shown(model, forest), "x net(layers(0(a0 b0) 1(a1 b1) 2(a2 b2)) norm(a3 b3) norm(a4 b4))");
    const told = forest.clusters.map((/** @type {any} */ { name, type, repeats }) => [name, type, repeats]);
    assert.deepEqual(told[2], ["layers", "M ×3", 3]);
    assert.deepEqual(told.slice(-2), [
      ["norm", "M", 0],
      ["norm", "M, call 2", 0],
    ]);
    const open = graph.openAtFirst(forest, model.count, 24);
    assert.ok(!open.has(forest.clusters[2].item), "a run of layers is closed at first");
    const all = graph.openAtFirst(forest, model.count, 24, () => 1);
    assert.equal(all.size, forest.clusters.length, "and opened with all");
  });

  it("with two layers as one, also where one has more operations and others are between them", () => {
    const model = modelOf([
      ["x", "placeholder", []],
      ["q0", "mm", ["x"], "net.layers.0.attn"],
      ["r0", "relu", ["q0"], "net.layers.0.attn"],
      ["s0", "sum", ["r0"], "net.layers.0"],
      ["between", "add", ["s0"], undefined, { home: "net.layers" }],
      ["q1", "mm", ["between"], "net.layers.1.attn"],
      ["r1", "relu", ["q1"], "net.layers.1.attn"],
      ["t1", "tanh", ["r1"], "net.layers.1.attn"],
      ["s1", "sum", ["t1"], "net.layers.1"],
      ["a", "mm", ["s1"], "net.head.0"],
      ["b", "relu", ["a"], "net.head.0"],
      ["c", "mm", ["b"], "net.head.1.inner"],
      ["d", "relu", ["c"], "net.head.1.inner"],
      ["output", "output", ["d"]],
    ]);
    const forest = graph.fold(model, "module");
    const named = (/** @type {string} */ wanted) =>
      forest.clusters.find((/** @type {any} */ { name }) => name === wanted);
    assert.deepEqual([named("layers").type, named("layers").repeats], ["M ×2", 2]);
    assert.deepEqual([named("head").type, named("head").repeats], ["", 0], "these two have not the same in them");
  });

  it("with what has no module where the server says that it is drawn", () => {
    const model = modelOf([
      ["l_x_", "placeholder", []],
      ["l_self_modules_0_parameters_weight_", "placeholder", [], undefined, { home: "net.0" }],
      ["a", "mm", ["l_x_", "l_self_modules_0_parameters_weight_"], "net.0"],
      ["made", "view", ["a"], undefined, { home: "net.0" }],
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

  it("with the inputs of the backward in it, where nothing else uses them", () => {
    const model = modelOf([
      ["w", "placeholder", [], undefined, { home: "net.b" }],
      ["both", "placeholder", [], undefined, { home: "net.b" }],
      ["shared", "placeholder", [], undefined, { home: "" }],
      ["x", "placeholder", []],
      ["a", "mm", ["both"], "net.b"],
      ["c", "mm", ["w", "both", "x", "shared"], "net.b", { backward: 1 }],
      ["d", "mm", ["c", "shared"], "other", { backward: 1 }],
    ]);
    assert.equal(shown(model, graph.fold(model, "module")), "x net.b(both a) backward(shared net.b(w c) d)");
    assert.deepEqual(graph.groupings(model), ["module", "order", "kernel"]);
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

  it("by fused node, in the module that all of it belongs to", () => {
    const model = modelOf([
      ["arg0_1", "placeholder", []],
      ["op0", "mm", ["arg0_1"], "net.a"],
      ["op1", "add", ["op0"], "net.a"],
      ["op2", "mul", ["op1"], "net.a"],
      ["op3", "sum", ["op2"], "net.b"],
      ["op4", "mul", ["op3"], "net.b"],
      ["op5", "mm", ["op4"], "net.b"],
    ]);
    assert.deepEqual(graph.groupings(model), ["module", "order", "kernel"]);
    Object.assign(model.graph, {
      groups: [
        { name: "op1_op2", type: "FusedSchedulerNode" },
        { name: "op3_op4", type: "FusedSchedulerNode" },
      ],
    });
    model.graph.nodes.group = [-1, -1, 0, 0, 1, 1, -1];
    assert.deepEqual(graph.groupings(model), ["fusion", "module", "order", "kernel"]);
    const tree = shown(model, graph.fold(model, "fusion"));
    assert.equal(tree, "arg0_1 net(a(op0 op1_op2(op1 op2)) b(op3_op4(op3 op4) op5))");
    model.graph.nodes.group = [-1, -1, 0, 0, 0, 1, 1];
    assert.equal(
      shown(model, graph.fold(model, "fusion")),
      "arg0_1 net(op0 op1_op2(op1 op2 op3) b(op3_op4(op4 op5)))",
      "one of several modules stands in what they have in common",
    );
  });

  it("what was not fused with a node is among what it has to do with elsewhere, and says why", () => {
    const model = modelOf([
      ["op0", "mm", []],
      ["op1", "add", ["op0"]],
      ["op2", "mul", ["op1"]],
      ["op3", "mul", ["op0"]],
    ]);
    model.graph.decisions = [
      { first: [0], second: [1, 2], fused: false, kind: "vertical", why: "too large" },
      { first: [1], second: [2], fused: true, kind: "vertical", why: "9" },
    ];
    assert.deepEqual(
      model.decisions(0).map((/** @type {any} */ one) => one.why),
      ["too large"],
    );
    assert.deepEqual(
      model.decisions(2).map((/** @type {any} */ one) => one.fused),
      [false, true],
    );
    const forest = graph.fold(model, "order");
    /** @type {any} */
    const root = { item: forest.root.item, parent: undefined, isOpen: true };
    const byItem = new Map([[root.item, root]]);
    for (const item of [0, 1, 2, 3]) {
      byItem.set(item, { item, parent: root, isOpen: false });
    }
    const far = graph.farFrom(byItem.get(0), { byItem }, forest, model);
    assert.deepEqual(
      far.map((/** @type {any} */ { box, kind }) => [box.item, kind]),
      [
        [1, "apart"],
        [2, "apart"],
      ],
      "wires lead to what it is used by; lines to what it was not fused with",
    );
  });

  it("in the order of what is done: a parameter stands before everything, and its module does not stand behind all", () => {
    const model = modelOf([
      ["l_self_parameters_w_", "placeholder", [], undefined, { home: "p.inner" }],
      ["a", "add", ["l_self_parameters_w_"], "p.inner"],
      ["b", "add", ["a"], "p.inner"],
      ["c", "add", ["b"], "q"],
      ["d", "add", ["c"], "q"],
      ["e", "add", ["d"], "p.inner"],
    ]);
    assert.equal(shown(model, graph.fold(model, "module")), "p.inner(l_self_parameters_w_ a b e) q(c d)");
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
    const size = (/** @type {any} */ { first, last }) => last - first;
    const names = (/** @type {number} */ most) =>
      [...graph.openAtFirst(forest, model.count, most, size)]
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

  it("a search finds what an operation was decomposed into, and exact names first", () => {
    const decomposed = { originals: ["aten._softmax", "torch.nn.functional.softmax"] };
    const model = modelOf([
      ["expand", "aten.expand", []],
      ["amax", "aten.amax", ["expand"], undefined, decomposed],
      ["sub", "aten.sub.Tensor", ["amax"], undefined, decomposed],
      ["special", "aten.special_exp2", ["sub"]],
      ["exp_9", "aten.exp", ["special"], undefined, decomposed],
      ["exp", "aten.exp", ["exp_9"]],
      ["log_softmax", "aten._log_softmax", ["exp"]],
      ["output", "output", ["log_softmax"]],
    ]);
    assert.deepEqual(model.decomposed(1), decomposed.originals);
    model.graph.originals.push(["torch.exp", "exp", "aten._softmax"]);
    model.graph.nodes.original[5] = 3;
    assert.deepEqual(model.decomposed(5), ["aten._softmax"], "other names of the same operation are not told");
    model.graph.nodes.original[5] = -1;
    const search = new graph.Search(model, graph.fold(model, "order"));
    const found = (/** @type {string} */ text) => {
      search.start(text);
      return search.matches.map((/** @type {number} */ node) => model.name(node));
    };
    assert.deepEqual(found("op:exp"), ["exp_9", "exp", "expand", "special"]);
    assert.deepEqual(found("op:softmax"), ["amax", "sub", "exp_9", "log_softmax"]);
    assert.deepEqual(found("OP:_Softmax"), ["amax", "sub", "exp_9", "log_softmax"]);
    assert.deepEqual(found("op:aten.exp"), ["exp_9", "exp", "expand"]);
    assert.deepEqual(found("exp"), ["exp_9", "exp", "expand", "special"], "also without a field");
    assert.deepEqual(found("name:exp"), ["exp", "expand", "exp_9"]);
    assert.deepEqual(found("op:softmax op:exp"), ["exp_9"]);
    assert.equal(search.step(1), model.graph.nodes.name.indexOf("exp_9"), "the next match is the best one");
    assert.deepEqual(found("softmax"), ["amax", "sub", "exp_9", "log_softmax"]);
  });

  it("lands on the first node that computes, not on a constant of the same line", () => {
    const model = modelOf([
      ["constant_58", "hlo.constant", []],
      ["weight", "get_attr", []],
      ["dot_4", "hlo.dot", ["weight"]],
      ["add_4", "hlo.add", ["dot_4", "constant_58"]],
    ]);
    assert.deepEqual(graph.mainFirst(model, [0, 1, 2, 3]), [2, 0, 1, 3]);
    assert.deepEqual(graph.mainFirst(model, [0, 1]), [0, 1]);
  });

  it("a line leads to its nodes, however its address is written", () => {
    const model = modelOf([["a", "mm", []]]);
    assert.deepEqual(model.nodesAt("file:///a b.py", 7), [0]);
    assert.deepEqual(model.nodesAt("file:///a%20b.py", 7), [0]);
    assert.deepEqual(model.nodesAt("file:///a%20b.py", 8), []);
    assert.deepEqual(model.nodesAt("irscope:/r/s.py", 0), [0]);
    model.graph.nodes.places = [[0, 11, 0, 12]];
    assert.deepEqual(model.nodesAt("file:///a b.py", 12), [0], "a node of a schedule came from several lines");
    assert.deepEqual(model.nodesAt("file:///a b.py", 13), []);
    model.graph.nodes.spans = [[20, 29, 40, 45]];
    const told = [19, 20, 29, 30, 40, 45, 46].map((line) => model.nodesAt("irscope:/r/s.py", line).length);
    assert.deepEqual(told, [0, 1, 1, 0, 1, 1, 0], "a node of a schedule has a description of several lines");
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

  it("names stay legible however small their boxes are, and none covers another", () => {
    const at = [
      [0, 0, "net", "Net · 90 nodes"],
      [4, 20, "embedding", "Embedding · 4 nodes"],
      [160, 20, "layers", "Block ×12 · 80 nodes"],
      [4, 80, "a_head_with_a_very_long_name_that_is_cut", "Linear · 2 nodes"],
    ];
    const boxes = at.map(([x, y], item) => ({ item, x, y, width: 150, height: 50 }));
    const cut = (/** @type {string} */ text, /** @type {number} */ room) =>
      text.slice(0, Math.max(2, Math.floor(room)));
    const labels = {
      of: (/** @type {number} */ item) => ({ title: at[item]?.[2], sub: at[item]?.[3] }),
      within: (/** @type {string} */ text, /** @type {number} */ room, /** @type {number} */ size) =>
        cut(text, room / (0.6 * size)),
      widthIn: (/** @type {string} */ text, /** @type {number} */ size) => text.length * 0.6 * size,
    };
    for (const scale of [0.8, 0.3, 0.1]) {
      /** @type {any[]} */
      const texts = [];
      /** @type {any[]} */
      const places = [];
      const pen = {
        text: (
          /** @type {string} */ text,
          /** @type {number} */ _x,
          /** @type {number} */ _y,
          /** @type {any} */ how,
        ) => texts.push([text, how.size * scale]),
        rect: (
          /** @type {number} */ x,
          /** @type {number} */ y,
          /** @type {number} */ width,
          /** @type {number} */ height,
        ) => places.push({ x, y, width, height }),
      };
      graph.drawNames(pen, boxes, labels, {}, scale);
      assert.ok(texts.every((/** @type {any[]} */ [, size]) => Math.abs(size - 10) < 1e-9));
      const said = texts.map((/** @type {any[]} */ [text]) => text);
      assert.ok(said.includes("net") && said.includes("layers") && said.includes("Block ×12"), `${scale}: ${said}`);
      for (const [at, one] of places.entries()) {
        for (const other of places.slice(at + 1)) {
          const isBeside = one.x + one.width <= other.x || other.x + other.width <= one.x;
          assert.ok(isBeside || one.y + one.height <= other.y || other.y + other.height <= one.y, `${scale}: ${said}`);
        }
      }
    }
  });

  it("a class stays inside of the box around its own", () => {
    const boxes = [
      { item: 0, x: 0, y: 0, width: 200, height: 200 },
      { item: 1, x: 100, y: 50, width: 60, height: 20 },
      { item: 2, x: 150, y: 100, width: 40, height: 20 },
    ];
    const names = [["self", "Model · 90 nodes"], ["norm", "LlamaRMSNorm · 4 nodes"], ["head", "Linear · 2 nodes"]]; // prettier-ignore
    const widthIn = (/** @type {string} */ text, /** @type {number} */ size) => text.length * 0.6 * size;
    const labels = {
      of: (/** @type {number} */ item) => ({ title: names[item]?.[0], sub: names[item]?.[1] }),
      within: (/** @type {string} */ text, /** @type {number} */ room, /** @type {number} */ size) =>
        text.slice(0, Math.floor(room / (0.6 * size))),
      widthIn,
    };
    /** @type {string[]} */
    const said = [];
    const pen = {
      rect: () => undefined,
      text: (/** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ _y, /** @type {any} */ how) => {
        said.push(text);
        assert.ok(x + widthIn(text, how.size) <= 200, text);
      },
    };
    graph.drawNames(pen, boxes, labels, {}, 1);
    assert.deepEqual(said, ["self", "Model", "norm", "LlamaRMSNo", "head"]);
  });

  it("no two kernels have one colour, and those with most nodes have those of the palette", () => {
    const nodes = Array.from({ length: 30 }, (_, at) => [`n${at}`, "mm", []]);
    const model = modelOf(/** @type {any} */ ([...nodes, ["m", "mm", []], ["x", "placeholder", []]]));
    const calls = nodes.map((_, at) => ({ name: `cpp_fused_mm_${at}`, call: 1, place: null }));
    model.setKernels({ calls, nodes: [...nodes.map((_, at) => [at]), [29], []] });
    for (const theme of ["dark", "light"]) {
      const colours = graph.colouring(model, "kernel", theme);
      const used = colours.swatches.map((/** @type {any} */ swatch) => swatch.colour);
      assert.equal(new Set(used).size, 30);
      assert.ok(used.every((/** @type {string} */ colour) => /^#[\da-f]{6}$/.test(colour)));
      assert.equal(colours.swatches[0].text, "cpp_fused_mm_29", "the one with two nodes");
      assert.deepEqual([colours.text(3), colours.text(31)], ["mm_3", "f32[2]"], "an input is in no kernel");
    }
    assert.match(graph.colouring(model, "time", "dark").heading, /^This graph ran on cpu\. Choose a device/);
  });

  it("a box says what is computed, not which overload", () => {
    const titles = ["aten.var_mean.correction", "prims.iota", "torch._C._nn.linear", "aten.sum.dim_IntList", "my.op.x"];
    const model = modelOf(/** @type {any} */ (titles.map((op, at) => [`n${at}`, op, []])));
    assert.deepEqual(
      titles.map((_, at) => model.title(at)),
      ["var_mean", "iota", "linear", "sum", "my.op.x"],
    );
  });
});

describe("estimated times", () => {
  const device = { name: "d", bandwidth: 1e9, rates: [{ dtype: "f32", flops: 1e12 }, { dtype: "bf16", flops: 4e12 }] }; // prettier-ignore

  it("are the larger of moving and computing, by dtype", () => {
    assert.equal(graph.leastMicros(device, 1000, null, "f32"), 1);
    assert.equal(graph.leastMicros(device, 1000, 4e6, "f32"), 4);
    assert.equal(graph.leastMicros(device, 1000, 4e6, "bf16"), 1);
    assert.equal(graph.leastMicros(device, null, 4e6, "i64"), 4, "as float32");
    assert.equal(graph.leastMicros(device, null, null, "f32"), undefined);
  });
});

describe("what a panel asks for first", () => {
  const subject = { run: "r", stage: "s", title: "t" };
  const change = { stage: "s/01-fold", before: "s" };
  /** What was asked, and an `Ahead` that asks. @param {unknown} [state] */
  const ahead = (state) => {
    /** @type {any[]} */
    const asked = [];
    const ask = async (/** @type {any} */ request) => asked.push(request);
    return { asked, host: new graph.Ahead("graph", subject, state, ask) };
  };

  it("is asked while its page is loaded, and once only", async () => {
    const { asked, host } = ahead();
    assert.deepEqual(asked, [graph.graphRequest(subject)]);
    assert.equal(await host.answer(graph.graphRequest(subject)), 1);
    assert.equal(await host.answer(graph.graphRequest(subject)), 2, "who asks again wants what is new");
  });

  it("is what it was like when it was left, and everything else is asked when it is wanted", async () => {
    const { asked, host } = ahead({ change });
    assert.deepEqual(asked[0].params, { run: "r", stage: "s/01-fold", compareWith: "s", asText: true });
    assert.equal(await host.answer({ method: "irscope/graphKernels", params: { run: "r", stage: "s" } }), 2);
    assert.deepEqual(asked[1].method, "irscope/graphKernels");
  });

  it("may fail before anybody wants it: the panel is told when it asks", async () => {
    const host = new graph.Ahead("graph", subject, undefined, () => Promise.reject(new Error("no server")));
    await new Promise((resolve) => setTimeout(resolve, 5));
    await assert.rejects(host.answer(graph.graphRequest(subject)), /no server/);
  });
});
