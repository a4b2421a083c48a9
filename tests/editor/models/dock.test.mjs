/** Which run a tab of the dock shows. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const dock = await load("panels/dock/model");

/** @param {string} run @param {string} lane @param {number} started @param {object} more */
const item = (run, lane, started, more = {}) => ({
  run,
  lane,
  started,
  script: "/a.py",
  outcome: "completed",
  ...more,
});
const OLD = item("old", "deep", 100);
const NEW = item("new", "fast", 200);

describe("the run that a tab shows", () => {
  it("is the last deep one where only that has what the tab shows", () => {
    const subject = { run: "new", deep: "old", title: "a.py" };
    assert.equal(dock.runOf("strip", subject), "old");
    assert.equal(dock.runOf("findings", subject), "new");
    assert.match(dock.ageText("strip", subject, [NEW, OLD]), /^Older run: deep, .*\. Newest: fast, .*\.$/);
    assert.equal(dock.ageText("findings", subject, [NEW, OLD]), "");
  });

  it("is not called old for a run of another script, or one that goes on", () => {
    const subject = { run: "old", title: "a.py" };
    assert.equal(dock.ageText("strip", subject, [item("new", "deep", 200, { script: "/b.py" }), OLD]), "");
    assert.equal(dock.ageText("strip", subject, [item("new", "deep", 200, { outcome: null }), OLD]), "");
    assert.notEqual(dock.ageText("findings", subject, [NEW, OLD]), "");
    assert.equal(dock.ageText("strip", { run: "gone", title: "" }, [NEW]), "", "it is not in the list");
  });
});
