/** The findings of a run as rows. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const model = await load("panels/findings/model");

/** @param {string} uri @param {object} more */
const place = (uri, more = {}) => ({ uri, line: 3, code: "GB1", message: "m", hidden: "", ...more });
/** @param {string} code @param {object} more */
const group = (code, more = {}) => ({
  kind: "graph-break",
  code,
  title: "Graph break",
  severity: "warning",
  message: "It prints",
  count: 1,
  seconds: 1,
  costsEveryCall: false,
  graphs: 0,
  fixes: 0,
  places: [place("file:///a/train.py")],
  ...more,
});

const DATA = {
  groups: [
    group("GB1", {
      seconds: 1,
      count: 5,
      places: [place("file:///a/train.py"), place("file:///b.py", { hidden: "off" })],
    }),
    group("GB2", { seconds: 3, severity: "error", title: "Break" }),
    group("GB3", { seconds: 1, count: 2, places: [place("file:///c.py", { hidden: "baseline" })] }),
  ],
};
const BY_SECONDS = { column: "seconds", down: true };

/** @param {any[]} shown */
const codes = (shown) => shown.map(({ group: { code } }) => code);

describe("the model of findings", () => {
  it("sorts by the column, then by how often", () => {
    assert.deepEqual(codes(model.shownGroups(DATA, "", true, BY_SECONDS)), ["GB2", "GB1", "GB3"]);
    assert.deepEqual(codes(model.shownGroups(DATA, "", true, { column: "seconds", down: false })), [
      "GB3",
      "GB1",
      "GB2",
    ]);
    const byCause = codes(model.shownGroups(DATA, "", true, { column: "cause", down: false }));
    assert.equal(byCause[0], "GB2", "errors come first");
  });

  it("by cost puts first what costs every call, and only then", () => {
    const groups = [...DATA.groups, group("GB0039", { seconds: 0, costsEveryCall: true })];
    const first = (/** @type {object} */ sort) => codes(model.shownGroups({ groups }, "", true, sort))[0];
    assert.equal(first(BY_SECONDS), "GB0039");
    assert.equal(first({ column: "count", down: true }), "GB1");
  });

  it("sorts by the place as a person counts lines", () => {
    const at = (/** @type {string} */ code, /** @type {number} */ line) =>
      group(code, { places: [place("file:///a/train.py", { line })] });
    const groups = [at("GB1", 99), at("GB2", 8), group("GB3", { places: [place("file:///a/a.py")] })];
    const shown = model.shownGroups({ groups }, "", true, { column: "place", down: false });
    assert.deepEqual(codes(shown), ["GB3", "GB2", "GB1"]);
    assert.equal(model.sortedBy("place", BY_SECONDS).down, false, "from the first line on");
  });

  it("leaves out hidden places, and causes that have no other", () => {
    assert.equal(model.hiddenCount(DATA), 2);
    const shown = model.shownGroups(DATA, "", false, BY_SECONDS);
    assert.deepEqual(codes(shown), ["GB2", "GB1"]);
    assert.equal(shown[1].places.length, 1);
  });

  it("filters by words of the cause, else by those of its places", () => {
    assert.deepEqual(codes(model.shownGroups(DATA, " gb2 ", true, BY_SECONDS)), ["GB2"]);
    const [only, ...others] = model.shownGroups(DATA, "B.PY:4", true, BY_SECONDS);
    assert.deepEqual([only.group.code, only.places.length, others.length], ["GB1", 1, 0]);
    assert.deepEqual(model.shownGroups(DATA, "nowhere", true, BY_SECONDS), []);
  });

  it("a second click on a head turns the order round", () => {
    assert.deepEqual(model.sortedBy("count", BY_SECONDS), { column: "count", down: true });
    assert.deepEqual(model.sortedBy("cause", BY_SECONDS), { column: "cause", down: false });
    assert.deepEqual(model.sortedBy("seconds", BY_SECONDS), { column: "seconds", down: false });
  });

  it("says how many groups are shown", () => {
    assert.equal(model.countText(1, 1), "1 group");
    assert.equal(model.countText(1, 3), "1 of 3 groups");
  });

  it("keys move between rows, open and close causes, and follow links", () => {
    const rows = [
      { key: "a", isGroup: true },
      { key: "a/0", isGroup: false },
      { key: "b", isGroup: true },
    ];
    /** @param {string} key @param {string} from */
    const deed = (key, from) => model.deedOf(key, rows, from);
    assert.deepEqual(deed("ArrowDown", "a"), { go: "a/0" });
    assert.deepEqual(deed("ArrowUp", "b"), { go: "a/0" });
    assert.deepEqual(deed("End", "a"), { go: "b" });
    assert.deepEqual(deed("Home", "b"), { go: "a" });
    assert.equal(deed("ArrowDown", "b"), "nothing");
    assert.deepEqual(deed("ArrowLeft", "a/0"), { go: "a" });
    assert.deepEqual(deed("ArrowLeft", "a"), { toggle: "a", open: false });
    assert.deepEqual(deed("ArrowRight", "a"), { toggle: "a", open: true });
    assert.equal(deed("ArrowRight", "a/0"), undefined);
    assert.deepEqual(deed("Enter", "b"), { toggle: "b" });
    assert.equal(deed(" ", "a/0"), "click");
    assert.equal(deed("x", "a"), undefined);
  });
});
