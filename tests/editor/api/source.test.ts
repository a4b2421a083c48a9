import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Region } from "../../../extension/src/protocol";
import { closeAll, internals, openScript, until } from "./help";

const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration("irscope");

describe("around the code", () => {
  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  /** The marks that an editor shows next after `change`. */
  async function marksAfter(change: () => Thenable<unknown>): Promise<Region[]> {
    const { regions } = await internals();
    let marked: Region[] | undefined;
    const subscription = regions.onDidMark((event) => (marked = event.regions));
    try {
      await change();
      return await until("marks", () => marked);
    } finally {
      subscription.dispose();
    }
  }

  it("regions are marked, and a setting turns them off", async () => {
    const shown = await marksAfter(() => openScript());
    assert.deepEqual(
      shown.map(({ kind }) => kind),
      ["compiled", "broken", "kernel"],
    );
    const { Workspace } = vscode.ConfigurationTarget;
    try {
      assert.deepEqual(await marksAfter(() => settings().update("decorations.enabled", false, Workspace)), []);
    } finally {
      const back = await marksAfter(() => settings().update("decorations.enabled", undefined, Workspace));
      assert.equal(back.length, 3);
    }
  });

  it("Toggle Inlay Hints turns the setting on and off", async () => {
    await openScript();
    assert.equal(settings().get("inlayHints.enabled"), false);
    await vscode.commands.executeCommand("irscope.toggleInlayHints");
    assert.equal(settings().get("inlayHints.enabled"), true);
    await vscode.commands.executeCommand("irscope.toggleInlayHints");
    assert.equal(settings().get("inlayHints.enabled"), false);
    await settings().update("inlayHints.enabled", undefined, vscode.ConfigurationTarget.Global);
  });

  it("Analyze This Notebook runs the notebook whichever cell is selected", async () => {
    const { server } = await internals();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    assert.ok(folder);
    const uri = vscode.Uri.joinPath(folder, "steps.ipynb");
    await vscode.window.showNotebookDocument(await vscode.workspace.openNotebookDocument(uri));
    let ran = "";
    const subscription = server.onDidChangeRuns((change) => (ran = change.running ? ran : change.uri));
    for (const command of ["irscope.runNotebook", "irscope.runOnThisNotebook"]) {
      ran = "";
      await vscode.commands.executeCommand(command);
      await until(`the end of the run by ${command}`, () => ran !== "");
    }
    subscription.dispose();
    assert.equal(vscode.Uri.parse(ran).toString(), uri.toString());
  });
});
