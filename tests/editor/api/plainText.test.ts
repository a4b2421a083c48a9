import * as assert from "node:assert/strict";
import { asMarkdown, withoutIcons, withoutLinks } from "../../../extension/src/host/plainText";

describe("names in lists, in the status bar and in messages", () => {
  it("are no icons", () => {
    assert.equal(withoutIcons("a$(bug)b $(sync~spin) $(no icon) $x"), "a$ (bug)b $ (sync~spin) $(no icon) $x");
  });

  it("are no links", () => {
    assert.equal(withoutLinks("[x](command:quit) a[0](1)"), "[x] (command:quit) a[0] (1)");
  });

  it("turn no direction and hide nothing", () => {
    assert.equal(withoutIcons("a\u202eb\u001b[31m\u200bc\td"), "a\\u202eb\\u001b[31m\\u200bc\td");
    assert.equal(withoutLinks("\u{1f469}\u200d\u{1f680}"), "\u{1f469}\u200d\u{1f680}", "joiners stay");
  });

  it("are text in a hover, but for what is between backticks", () => {
    assert.equal(asMarkdown("run `irscope a*b*` *now*"), "run `irscope a*b*` \\*now\\*");
    assert.equal(asMarkdown("[x](command:quit) <b>"), "\\[x\\]\\(command\\:quit\\) \\<b\\>");
    assert.equal(asMarkdown("``[x](y)"), "\\`\\`\\[x\\]\\(y\\)", "a backtick that is not closed is a letter");
  });
});
