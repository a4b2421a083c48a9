import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { closeAll, internals, openScript, until, visibleDocument } from "./help";

const RUN = "20261120-101500-fake";
const JOINT = `irscope:/${RUN}/0/0/joint-graph.py`;

async function drawnAfter(what: string, command: string): Promise<void> {
  const { dock } = await internals();
  let drawn = false;
  const subscription = dock.onDidDraw((each) => (drawn ||= each === what));
  await vscode.commands.executeCommand(command);
  await until(`${command} draws ${what}`, () => drawn);
  subscription.dispose();
}

describe("the dock and the steps along the pipeline", () => {
  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  for (const [command, what] of [
    ["irscope.showPipeline", "the pipeline"],
    ["irscope.showFindings", "the findings"],
    ["irscope.showCompileTime", "the compile times"],
    ["irscope.showTime", "the measured time"],
    ["irscope.showMemory", "the memory plan"],
    ["irscope.showChanges", "the changes"],
    ["irscope.showComparison", "the comparison"],
    ["irscope.showRanks", "the ranks"],
  ] as const) {
    it(`${command} shows its tab of the view`, async () => {
      await openScript();
      await drawnAfter(what, command);
    });
  }

  it("shows the run again when it was hidden and no editor is left", async () => {
    const hide = "workbench.action.closePanel";
    await openScript();
    await vscode.commands.executeCommand(hide);
    await drawnAfter("the pipeline", "irscope.showPipeline");
    await vscode.commands.executeCommand(hide);
    await closeAll();
    await drawnAfter("the pipeline", "irscope.showPipeline");
  });

  it("Next and Previous Stage step from a stage's document, in its own column, down to the source", async () => {
    await openScript();
    const joint = await vscode.workspace.openTextDocument(vscode.Uri.parse(JOINT));
    await vscode.window.showTextDocument(joint, vscode.ViewColumn.Two);
    await vscode.commands.executeCommand("irscope.nextStage");
    const next = await until("the forward graph", () => visibleDocument("forward-graph.py"));
    assert.equal(next.viewColumn, vscode.ViewColumn.Two);
    assert.equal(next.selection.active.line, 2, "the line that corresponds");
    await vscode.commands.executeCommand("irscope.previousStage");
    await until("the joint graph", () => visibleDocument("joint-graph.py"));
  });

  it("Compare with Previous Stage opens the editor's comparison", async () => {
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(vscode.Uri.parse(JOINT)));
    await vscode.commands.executeCommand("irscope.compareWithPreviousStage");
    const input = await until("the comparison", () => {
      const found = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
      return found instanceof vscode.TabInputTextDiff && found;
    });
    assert.match(input.original.path, /pre-grad-graph\.py$/);
    assert.match(input.modified.path, /joint-graph\.py$/);
  });

  it("Compare with Previous Stage opens nothing where what is before is in another language", async () => {
    const uri = vscode.Uri.parse(JOINT.replace("joint-graph", "bytecode"));
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    await vscode.commands.executeCommand("irscope.compareWithPreviousStage");
    assert.equal(vscode.window.activeTextEditor?.document.uri.toString(), uri.toString());
    assert.ok(vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputText);
  });

  it("are contributed where they apply, and nowhere else", async () => {
    const { contributes } = vscode.extensions.getExtension("irscope.irscope")?.packageJSON as {
      contributes: {
        keybindings: { command: string; when: string }[];
        menus: Record<string, { command: string; when: string }[]>;
        views: Record<string, { id: string; type?: string; when: string }[]>;
      };
    };
    const [view] = contributes.views["irscopePanel"] ?? [];
    assert.deepEqual([view?.id, view?.type, view?.when], ["irscope.dock", "webview", "irscope.active"]);
    // The editor writes quotation marks into what it has read.
    const bound = contributes.keybindings.map(({ command, when }) => [command, when.replaceAll("'", "")]);
    for (const command of ["previousStage", "nextStage"]) {
      const when = bound.find(([each]) => each === `irscope.${command}`)?.[1];
      assert.equal(when, "editorTextFocus && resourceScheme == irscope", command);
    }
    const palette = contributes.menus["commandPalette"] ?? [];
    const tabs = [
      "showPipeline",
      "showFindings",
      "showCompileTime",
      "showTime",
      "showMemory",
      "showChanges",
      "showComparison",
      "showRanks",
    ];
    for (const command of tabs) {
      assert.equal(palette.find((each) => each.command === `irscope.${command}`)?.when, "irscope.active", command);
    }
    const isStage = "resourceScheme == irscope";
    const offered = {
      previousStage: isStage,
      nextStage: isStage,
      compareWithPreviousStage: `irscope.isComparable && ${isStage}`,
    };
    for (const [command, wanted] of Object.entries(offered)) {
      const when = palette.find((each) => each.command === `irscope.${command}`)?.when;
      assert.equal(when?.replaceAll("'", ""), wanted, command);
    }
  });
});
