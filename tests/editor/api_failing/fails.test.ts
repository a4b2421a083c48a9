import * as assert from "node:assert/strict";

describe("the self-check", () => {
  it("fails, so that the command that runs the tests is seen to fail", () => {
    assert.fail("on purpose");
  });
});
