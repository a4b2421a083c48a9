/** Links of hovers become commands, which open a place where the extension's lists open it. */

import assert from "node:assert/strict";
import { load } from "../modules.mjs";

const { withCommands } = await load("host/hoverLinks");

/** The links of Markdown: a place behind the command, or the address. @param {string} markdown @returns {unknown[]} */
function linksOf(markdown) {
  return [...markdown.matchAll(/\]\(([^)]*)\)/g)].map(([, target = ""]) => {
    const [command, place] = target.split("?");
    return command === "command:irscope.showPlace" ? JSON.parse(decodeURIComponent(place ?? "")) : target;
  });
}

describe("links of hovers", () => {
  it("a line of a file, counted from zero", () => {
    const said = withCommands("In `Model`, called from [train.py:3](file:///a%20b/train.py#L3)");
    assert.deepEqual(linksOf(said), [[{ uri: "file:///a%20b/train.py", line: 2 }]]);
    assert.match(said, /^In `Model`, called from \[train\.py:3\]\(command:/);
  });

  it("a kernel and a file without a line", () => {
    const said = withCommands("[`k0`](irscope:/run-1/0/0/kernel/k0.cpp), [a.py](file:///a.py)");
    assert.deepEqual(linksOf(said), [[{ uri: "irscope:/run-1/0/0/kernel/k0.cpp" }], [{ uri: "file:///a.py" }]]);
  });

  it("pages of the web and cells of notebooks stay as they are", () => {
    for (const text of ["[GB0059](https://pytorch.org/gb0059.html#L3)", "[x](vscode-notebook-cell:/a.ipynb#W0s)"]) {
      assert.equal(withCommands(text), text);
    }
  });
});
