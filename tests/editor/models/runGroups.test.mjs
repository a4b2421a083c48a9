/** The runs of a script that went through several pipelines share a row of the tree. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const { rankOf, rowsOf, wayOf } = await load("runGroups");

describe("rows of the tree of runs", () => {
  /** @param {string} name @param {number} started @param {string} pipeline */
  const run = (name, started, pipeline, script = "/a.py", lane = "deep") => ({
    run: name,
    started,
    pipeline,
    script,
    lane,
    scriptUri: `file://${script}`,
  });
  /** @param {{run: string}[]} runs */
  const names = (runs) => runs.map((each) => each.run);

  it("a script with one pipeline has a row for each run", () => {
    const runs = [run("b", 2, "inductor"), run("a", 1, "inductor", "/a.py", "fast")];
    assert.deepEqual(rowsOf(runs), runs);
  });

  it("the newest run of each pipeline comes first, then the earlier ones, at the place of the newest", () => {
    const runs = [
      run("f", 6, "inductor", "/b.py"),
      run("e", 5, "inductor", "/a.py", "fast"),
      run("d", 4, "inductor"),
      run("c", 3, "inductor"),
      run("b", 2, "inductor", "/a.py", "fast"),
      run("a", 1, "torchscript"),
    ];
    const [other, script, ...rest] = rowsOf(runs);
    assert.equal(other, runs[0]);
    assert.deepEqual(names(script.newest), ["e", "d", "a"], "the fast lane has a run of its own");
    assert.deepEqual(names(script.earlier), ["c", "b"]);
    assert.equal(script.scriptUri, "file:///a.py");
    assert.deepEqual(rest, []);
  });

  it("a row says the pipeline where it is not the usual one, and else the lane", () => {
    const shown = [run("a", 1, "inductor"), run("b", 2, "tvm"), run("c", 3, "inductor", "/a.py", "fast")];
    assert.deepEqual(shown.map(wayOf), ["deep", "tvm", "fast"]);
  });

  it("the order of the list decides which run is the newest, not a clock that was ahead once", () => {
    const runs = [run("c", 3, "export"), run("b", 9, "export"), run("a", 4, "inductor")];
    const [script] = rowsOf(runs);
    assert.deepEqual([names(script.newest), names(script.earlier)], [["c", "a"], ["b"]]);
  });

  it("a run of a job names its rank, and any other run none", () => {
    assert.deepEqual(rankOf({ rank: 0, world: 2 }), ["rank 0 of 2"]);
    assert.deepEqual(rankOf({ rank: null, world: 0 }), []);
  });
});
