/** Which run a tab of the dock shows. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const dock = await load("panels/dock/model");

describe("the run that a tab shows", () => {
  it("is the last deep one where only that has what the tab shows", () => {
    const subject = { run: "new", deep: "old", title: "a.py" };
    assert.equal(dock.runOf("strip", subject), "old");
    assert.equal(dock.runOf("findings", subject), "new");
  });
});

describe("a run in the list of the dock", () => {
  const run = {
    script: "/work/train.py",
    lane: "deep",
    pipeline: "inductor",
    started: 0,
    outcome: "completed",
    seconds: 1.5,
    rank: null,
    world: 0,
  };

  it("names its rank, since ranks of a job differ in nothing else", () => {
    const [plain, first, second] = [run, { ...run, rank: 0, world: 8 }, { ...run, rank: 5, world: 8 }].map(
      dock.runText,
    );
    assert.match(plain, /^train\.py · inductor · [\d:]+.* · 1\.5 s$/);
    assert.match(dock.runText({ ...run, outcome: null, seconds: 0 }), /^train\.py · inductor · [\d:]+.* · running$/);
    assert.match(first, /^train\.py · rank 0 of 8 · inductor · /);
    assert.match(second, /^train\.py · rank 5 of 8 · inductor · /);
  });
});
