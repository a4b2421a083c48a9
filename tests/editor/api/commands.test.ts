import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { closeAll, internals, openScript, pick, until, visibleDocument } from "./help";

describe("commands", () => {
  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  it("are all registered, and none has an id of the server's", async () => {
    const registered = await vscode.commands.getCommands(true);
    const manifest = vscode.extensions.getExtension("irscope.irscope")?.packageJSON as {
      contributes: { commands: { command: string; category: string }[] };
    };
    for (const { command, category } of manifest.contributes.commands) {
      assert.ok(registered.includes(command), command);
      assert.equal(category, "IRScope");
      assert.ok(!command.startsWith("irscope.server."), command);
    }
  });

  it("Show Generated Kernel opens the kernel of the line beside the source and leaves the cursor there", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(4, 0, 4, 0);
    await vscode.commands.executeCommand("irscope.showKernel");
    const kernel = await until("the kernel", () => visibleDocument("cpp_fused_mul_relu_0.cpp"));
    assert.equal(kernel.document.languageId, "cpp");
    assert.equal(kernel.viewColumn, vscode.ViewColumn.Two);
    assert.equal(kernel.selection.active.line, 2);
    assert.match(kernel.document.getText(), /extern "C" void kernel/);
    assert.equal(vscode.window.activeTextEditor?.document.uri.toString(), editor.document.uri.toString());
  });

  it("Show Generated Kernel offers a choice where a line has several", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(5, 0, 5, 0);
    const done = vscode.commands.executeCommand("irscope.showKernel");
    await pick(done, 1);
    const kernel = await until("the kernel", () => visibleDocument("cpp_fused_mul_relu_0.cpp"));
    assert.equal(kernel.selection.active.line, 3, "the second one was chosen");
  });

  it("the list of kernels is filled in while the run goes on, and what is marked in it stays marked", async () => {
    const { lists } = await internals();
    await openScript("slow.py");
    const done = vscode.commands.executeCommand("irscope.showKernel");
    await until("the first two kernels", () => lists.list?.items.length === 3); // With the heading.
    assert.ok(lists.list?.busy);
    assert.match(lists.list.placeholder ?? "", /^2 kernels so far/);
    await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
    await until("the second", () => lists.active?.detail?.endsWith("cpp_fused_3"));
    await until("all four", () => lists.list?.items.length === 5 && !lists.list.busy);
    assert.match(lists.list.placeholder ?? "", /^4 kernels came from/);
    assert.match(lists.active?.detail ?? "", /cpp_fused_3$/);
    await vscode.commands.executeCommand("workbench.action.closeQuickOpen");
    await done;
  });

  it("Go to the Library's Line chooses among the lines of a kernel's line, and Go Back leads back", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(4, 0, 4, 0);
    await vscode.commands.executeCommand("irscope.showKernel");
    const kernel = await until("the kernel", () => visibleDocument("cpp_fused_mul_relu_0.cpp"));
    await vscode.window.showTextDocument(kernel.document, { viewColumn: kernel.viewColumn ?? 2 });
    await pick(vscode.commands.executeCommand("irscope.goToLibraryLine"), 1);
    const active = (): vscode.TextEditor | undefined => vscode.window.activeTextEditor;
    await until("the line", () => active()?.document === editor.document && active()?.selection.active.line === 5);
    assert.equal(active()?.viewColumn, vscode.ViewColumn.One);
    await vscode.commands.executeCommand("workbench.action.navigateBack");
    await until("the kernel", () => active()?.document === kernel.document);
  });

  it("Go to the Library's Line on a line of Python chooses among the innermost lines of its kernels", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(5, 0, 5, 0);
    await pick(vscode.commands.executeCommand("irscope.goToLibraryLine"), 1);
    const library = await until("the library", () => visibleDocument("plain.py"));
    assert.equal(library.selection.active.line, 1);
  });

  it("Show Generated Kernel opens nothing where there is none", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(0, 0, 0, 0);
    await vscode.commands.executeCommand("irscope.showKernel");
    assert.equal(vscode.window.visibleTextEditors.length, 1);
  });

  it("Show Stage… opens the chosen stage in its language", async () => {
    await openScript();
    const done = vscode.commands.executeCommand("irscope.showStage");
    await pick(done, 1);
    const stage = await until("the stage", () => visibleDocument("modified-bytecode.pyc.txt"));
    assert.equal(stage.document.languageId, "python-bytecode");
    const before = stage.document.getText();
    await Promise.resolve(stage.edit((edit) => edit.insert(new vscode.Position(0, 0), "x"))).catch(() => false);
    assert.equal(stage.document.getText(), before, "it is read-only");
  });

  it("Show Stage… lands on the line that came from the line at the cursor, and at the top where there is none", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(5, 0, 5, 0);
    await pick(vscode.commands.executeCommand("irscope.showStage"), 0);
    const graph = await until("the graph's text", () => visibleDocument("dynamo-graph.py"));
    await until("the line", () => graph.selection.active.line === 2);
    await vscode.window.showTextDocument(editor.document, vscode.ViewColumn.One);
    await pick(vscode.commands.executeCommand("irscope.showStage"), 1);
    const bytecode = await until("the bytecode", () => visibleDocument("modified-bytecode.pyc.txt"));
    assert.equal(bytecode.selection.active.line, 0);
  });

  it("Show Stage… on a stage document chooses among the stages of its own run", async () => {
    const uri = vscode.Uri.parse("irscope:/20261120-101500-fake/0/1/dynamo-graph.py");
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    const done = vscode.commands.executeCommand("irscope.showStage");
    await pick(done, 2);
    await until("the guards", () => visibleDocument("guards.guards.txt"));
  });

  it("Show Stage to the Side… keeps the stages that are shown, and Show Stage… takes the place of one", async () => {
    const editor = await openScript();
    const shown = (): string[] =>
      vscode.window.visibleTextEditors
        .filter(({ document }) => document.uri.scheme === "irscope")
        .map(({ document, viewColumn }) => `${document.uri.path.split("/").pop()} ${viewColumn}`)
        .sort();
    const choose = async (command: string, steps: number): Promise<void> => {
      await vscode.window.showTextDocument(editor.document, vscode.ViewColumn.One);
      await pick(vscode.commands.executeCommand(command), steps);
    };
    await choose("irscope.showStage", 0);
    await until("the graph", () => shown().join() === "dynamo-graph.py 2");
    await choose("irscope.showStage", 1);
    await until("the bytecode in its place", () => shown().join() === "modified-bytecode.pyc.txt 2");
    await choose("irscope.showStageToSide", 0);
    await until("both", () => shown().join() === "dynamo-graph.py 3,modified-bytecode.pyc.txt 2");
  });

  it("Show Autotuning opens what was tuned, and nothing where nothing was", async () => {
    const open = async (stage: string): Promise<void> => {
      const uri = vscode.Uri.parse(`irscope:/20261120-101500-fake/${stage}`);
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
      await vscode.commands.executeCommand("irscope.showAutotuning");
    };
    await open("0/1/dynamo-graph.py");
    assert.equal(vscode.window.visibleTextEditors.length, 1);
    await vscode.commands.executeCommand("notifications.clearAll");
    await open("0/9/broken-graph.py");
    const tuned = await until("the choices", () => visibleDocument("autotuning.txt"));
    assert.match(tuned.document.getText(), /2 choices, fastest mm_1/);
    await until("the operator of the line", () => tuned.selection.active.line === 1);
  });

  it("Show FX Graph draws the graph of the open stage document", async () => {
    const { graphs } = await internals();
    await openScript();
    const uri = vscode.Uri.parse("irscope:/20261120-101500-fake/0/0/dynamo-graph.py");
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    const drawn = new Promise<string>((resolve) => graphs.onDidDraw(({ what }) => resolve(what)));
    await vscode.commands.executeCommand("irscope.showGraph");
    assert.equal(await drawn, "3 nodes");
  });

  it("Show FX Graph lands on the nodes of the line at the cursor, also where the graph is open", async () => {
    const { graphs } = await internals();
    const landed: number[][] = [];
    const subscription = graphs.onDidLand(({ lines }) => landed.push(lines));
    const editor = await openScript();
    for (const line of [4, 5]) {
      await vscode.window.showTextDocument(editor.document, vscode.ViewColumn.One);
      editor.selection = new vscode.Selection(line, 0, line, 0);
      await pick(vscode.commands.executeCommand("irscope.showGraph"), 0);
      await until("the nodes", () => landed.length === line - 3);
    }
    subscription.dispose();
    assert.deepEqual(landed, [[1], [2]]);
  });

  it("Analyze This File fills the tree", async () => {
    const { tree } = await internals();
    await openScript();
    await vscode.commands.executeCommand("irscope.run");
    const [run] = await tree.getChildren();
    assert.ok(run?.kind === "run");
    assert.equal(tree.getTreeItem(run).label, "train.py");
    assert.match(String(tree.getTreeItem(run).description), /^deep · 1 finding · 2 kernels · 1\.8 s · /);
    const [first, second, , gaps] = await tree.getChildren(run);
    assert.equal(first && tree.getTreeItem(first).label, "0/0 loss_of");
    assert.equal(first && tree.getTreeItem(first).description, "2 ops · 900 ms");
    assert.equal(second && tree.getTreeItem(second).label, "0/1 torch_dynamo_resume_in_loss_of_at_6");
    assert.equal(gaps && tree.getTreeItem(gaps).description, "1 gap");
    const headings = first === undefined ? [] : await tree.getChildren(first);
    assert.deepEqual(
      headings.map((heading) => [tree.getTreeItem(heading).label, tree.getTreeItem(heading).description]),
      [
        ["Dynamo", "3 stages"],
        ["Kernels", "2 kernels"],
      ],
    );
    const stages = headings[0] === undefined ? [] : await tree.getChildren(headings[0]);
    assert.deepEqual(
      stages.map((stage) => tree.getTreeItem(stage).label),
      ["Dynamo graph", "Modified bytecode", "Guards"],
    );
    assert.equal(stages[0] && tree.getTreeItem(stages[0]).contextValue, "graphStage");
    const kernels = headings[1] === undefined ? [] : await tree.getChildren(headings[1]);
    assert.deepEqual(
      kernels.map((kernel) => [tree.getTreeItem(kernel).label, tree.getTreeItem(kernel).description]),
      [
        ["cpp_fused_mul_relu_0", "cpp · line 5"],
        ["cpp_fused_add_1", "cpp · line 5"],
      ],
    );
  });

  it("a debug session that ran a script refreshes the tree", async () => {
    const { tree } = await internals();
    const { document } = await openScript("plain.py");
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // What the run before has refreshed is not meant.
    let refreshed = 0;
    const subscription = tree.onDidChangeTreeData(() => (refreshed += 1));
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-debug-"));
    try {
      const store = path.join(folder, "runs.db");
      const program = document.uri.fsPath;
      const launch = { type: "irscope", request: "launch", name: "Debug", program, store, stopOn: "none" };
      assert.equal(await vscode.debug.startDebugging(undefined, launch), true);
      await until("the tree is refreshed", () => refreshed > 0);
      assert.ok(fs.existsSync(store), "the session has run the script");
    } finally {
      subscription.dispose();
      await vscode.debug.stopDebugging();
      fs.rmSync(folder, { recursive: true, force: true });
    }
  });

  it("a click in the tree opens the document at the kernel", async () => {
    const uri = "irscope:/20261120-101500-fake/0/0/kernel/cpp_fused_mul_relu_0.cpp";
    await vscode.commands.executeCommand("irscope.openStage", uri, 2);
    const kernel = await until("the kernel", () => visibleDocument("cpp_fused_mul_relu_0.cpp"));
    assert.equal(kernel.selection.active.line, 2);
  });

  it("the lens reveals its run in the tree", async () => {
    const { tree } = await internals();
    const { document } = await openScript();
    await vscode.commands.executeCommand("irscope.runOnThisFile"); // the old name of irscope.run
    const place = { run: "20261120-101500-fake", uri: document.uri.toString(), line: 3 };
    await vscode.commands.executeCommand("irscope.showRun", place);
    const selected = await until("a selection in the tree", () => tree.view.selection[0]);
    assert.ok(selected.kind === "compile" && selected.item.id === "0/0");
  });

  it("Cancel Run ends a run at once", async () => {
    await openScript("slow.py");
    const started = Date.now();
    const run = vscode.commands.executeCommand("irscope.run");
    const { tree } = await internals();
    await until("the run", async () =>
      (await tree.getChildren()).some((each) => each.kind === "run" && each.item.outcome === null),
    );
    await vscode.commands.executeCommand("irscope.cancel");
    await run;
    assert.ok(Date.now() - started < 15_000, "the fake run takes 30 s when it is not cancelled");
  });

  it("Restart Server comes back with an answering server, however often it is asked", async () => {
    const { server } = await internals();
    const states: string[] = [];
    const subscription = server.onDidChangeState((state) => states.push(state));
    await Promise.all([1, 2, 3, 4, 5].map(() => vscode.commands.executeCommand("irscope.restartServer")));
    subscription.dispose();
    assert.equal(server.status().state, "ready");
    assert.ok(
      states.filter((state) => state === "ready").length <= 2,
      `one running and one queued restart: ${states.join(" ")}`,
    );
  });

  it("Show Log and Show Script Output open their channels", async () => {
    await vscode.commands.executeCommand("irscope.showLog");
    await vscode.commands.executeCommand("irscope.showOutput");
  });
});
