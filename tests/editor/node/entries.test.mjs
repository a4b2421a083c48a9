/**
 * What a user sees of a library module, with the packed extension, the real server and real torch: no run of its own, a
 * choice of what runs it, findings in it, and what is said of them after an edit.  Each step leaves a picture.
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { onScreen } from "../screen.mjs";

const LIBRARY = `import torch


@torch.compile
def score(x):
    y = torch.relu(x)
    print("a graph break")
    return y.sum()
`;
const SCRIPT = `import sys

import torch

from model import score

score(torch.ones(int(sys.argv[1])))
`;
const LAUNCH = `{
  // The debugger's own configuration gives the argument.
  "configurations": [
    { "name": "Train", "type": "debugpy", "request": "launch", "program": "\${workspaceFolder}/train.py", "args": ["8"], },
  ]
}
`;
/** A run with a torch that is not imported yet, on a slow machine. */
const RUN_MS = 120_000;

describe("a library module on the screen", () => {
  /** @type {string} */
  let folder;
  const workbench = onScreen({
    name: "entries",
    viewport: { width: 1100, height: 600 },
    settings: { "files.autoSave": "off" }, // A web editor saves by itself otherwise.
    open: (home) => {
      folder = path.join(home, "project");
      fs.mkdirSync(path.join(folder, ".vscode"), { recursive: true });
      fs.writeFileSync(path.join(folder, "model.py"), LIBRARY);
      fs.writeFileSync(path.join(folder, "train.py"), SCRIPT);
      fs.writeFileSync(path.join(folder, ".vscode", "launch.json"), LAUNCH);
      return folder;
    },
  });

  const status = () => workbench.page.locator("[id*='irscope.status']");
  const lens = (/** @type {RegExp} */ text) =>
    workbench.page.locator(".codelens-decoration a", { hasText: text }).first();

  it("asks for what runs it, runs that, and marks what an edit may have made untrue", async () => {
    await workbench.open("model.py");
    await lens(/choose the script that runs this module/).waitFor();
    await status().filter({ hasText: "IRScope: choose entry" }).waitFor();
    await workbench.screenshot("entry-none");

    await lens(/choose the script/).click();
    await workbench.pickFirst("Choose Entry Script for model.py", 60_000, "entry-choice");
    await workbench.page.locator(".squiggly-warning, .squiggly-info").first().waitFor({ timeout: RUN_MS });
    const settings = JSON.parse(fs.readFileSync(path.join(folder, ".vscode", "settings.json"), "utf8"));
    assert.deepEqual(settings, { "irscope.run.entryOf": { "model.py": "train.py" } });
    await lens(/graph.* · 1 break/).waitFor();
    await workbench.screenshot("entry-findings");

    await workbench.open("model.py:1");
    await workbench.page.keyboard.press("Home");
    await workbench.page.keyboard.type("# edited\n");
    await lens(/before your edit/).waitFor();
    await status().filter({ hasText: "IRScope: edited" }).waitFor();
    await workbench.screenshot("stale-dark");
    await workbench.setTheme("Light Modern");
    await status().hover();
    await workbench.page.waitForTimeout(1500);
    await workbench.screenshot("stale-light");

    await workbench.page.locator(".monaco-editor .view-lines").first().click();
    await workbench.page.keyboard.press("Control+S");
    await status()
      .filter({ hasText: /^\s*IRScope\s*$/ })
      .waitFor({ timeout: RUN_MS });
    await lens(/1 break · [\d.]+ m?s$/).waitFor();
    await workbench.screenshot("stale-gone-light");
  });
});
