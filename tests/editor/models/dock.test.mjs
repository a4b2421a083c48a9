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
