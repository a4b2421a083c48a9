/** Commands that no other file of this folder is about, and that none is left out. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import type { Element } from "../../../extension/src/host/runItems";
import { closeAll, fileName, internals, openScript, pick, until } from "./help";

/** The run of the tree, and the first of its compiles and stages. */
async function elements(): Promise<Record<"run" | "compile" | "stage", Element>> {
  const { tree } = await internals();
  await openScript();
  await vscode.commands.executeCommand("irscope.run");
  const [run] = await tree.getChildren();
  const [compile] = await tree.getChildren(run);
  const [heading] = await tree.getChildren(compile);
  const [stage] = await tree.getChildren(heading);
  assert.ok(run && compile && stage);
  return { run, compile, stage };
}

function tabs(): string[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs.map(({ label }) => label));
}

/** What a command would have debugged: the last provider that is asked calls it off. */
async function debugged(command: string, ...given: unknown[]): Promise<vscode.DebugConfiguration[]> {
  const seen: vscode.DebugConfiguration[] = [];
  const provider = vscode.debug.registerDebugConfigurationProvider("irscope", {
    resolveDebugConfigurationWithSubstitutedVariables: (_, configuration) => {
      seen.push(configuration);
      return undefined;
    },
  });
  await vscode.commands.executeCommand(command, ...given);
  provider.dispose();
  return seen;
}

describe("the other commands", () => {
  const walkthroughs = vscode.workspace.getConfiguration("workbench.welcomePage.walkthroughs");

  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  it("the walkthrough opens by itself with the first file that uses torch, once", async () => {
    await walkthroughs.update("openOnInstall", true, vscode.ConfigurationTarget.Global);
    try {
      await openScript("plain.py");
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.deepEqual(tabs(), ["plain.py"], "nothing opens beside a file that does not use torch");
      await openScript();
      await until("the walkthrough", () => tabs().some((label) => /Walkthrough|Welcome|IRScope/.test(label)));
      await closeAll();
      await openScript("plain.py");
      await openScript();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      assert.ok(!tabs().some((label) => /Walkthrough|Welcome|IRScope/.test(label)), tabs().join());
    } finally {
      await walkthroughs.update("openOnInstall", false, vscode.ConfigurationTarget.Global);
    }
  });

  it("Open Walkthrough opens it whenever it is asked for", async () => {
    await vscode.commands.executeCommand("irscope.openWalkthrough");
    await until("the walkthrough", () => tabs().some((label) => /Walkthrough|Welcome|IRScope/.test(label)));
  });

  it("Open an Example opens a copy that may be edited, and keeps the edits", async () => {
    await vscode.commands.executeCommand("irscope.openExample");
    const editor = vscode.window.activeTextEditor;
    assert.ok(editor && /^gpt_\w+\.py$/.test(fileName(editor.document.uri)), String(editor?.document.uri));
    assert.match(editor.document.getText(), /torch\.compile/);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "# mine\n"));
    await editor.document.save();
    await closeAll();
    await vscode.commands.executeCommand("irscope.openExample");
    assert.match(vscode.window.activeTextEditor?.document.getText() ?? "", /^# mine\n/);
  });

  it("Show Status Menu does what is chosen", async () => {
    const { server } = await internals();
    await openScript();
    let ran = false;
    const subscription = server.onDidChangeRuns(({ running }) => (ran ||= !running));
    const done = vscode.commands.executeCommand("irscope.showMenu");
    await pick(done, 0);
    await until("the run", () => ran);
    subscription.dispose();
  });

  it("Check Without Compile checks the active file, or the run of the finding", async () => {
    const { server } = await internals();
    const uri = (await openScript()).document.uri.toString();
    await vscode.commands.executeCommand("irscope.checkWithoutCompile");
    await vscode.commands.executeCommand("irscope.checkWithoutCompile", { uri, run: "20261120-101500-fake" });
    const { checked } = await server.request(new RequestType<object, { checked: object[] }, void>("test/checked"), {});
    assert.deepEqual(checked, [{ uri }, { uri, run: "20261120-101500-fake" }]);
    await vscode.commands.executeCommand("notifications.clearAll");
  });

  it("Refresh Runs asks the server anew", async () => {
    const { tree } = await internals();
    let asked = false;
    const subscription = tree.onDidChangeTreeData(() => (asked = true));
    await vscode.commands.executeCommand("irscope.refreshRuns");
    assert.ok(asked);
    subscription.dispose();
  });

  it("Go to Source, Run Again and Show as Graph work from the rows of the tree", async () => {
    const { server, graphs } = await internals();
    const { run, compile, stage } = await elements();
    await closeAll();
    await vscode.commands.executeCommand("irscope.openSource", run);
    assert.equal(vscode.window.activeTextEditor && fileName(vscode.window.activeTextEditor.document.uri), "train.py");
    await vscode.commands.executeCommand("irscope.openSource", compile);
    assert.equal(vscode.window.activeTextEditor?.selection.active.line, 3);

    let ran = "";
    const subscription = server.onDidChangeRuns((change) => (ran = change.running ? ran : change.uri));
    await vscode.commands.executeCommand("irscope.runAgain", run);
    subscription.dispose();
    assert.match(ran, /train\.py$/);

    const drawn = new Promise<string>((resolve) => graphs.onDidDraw(({ what }) => resolve(what)));
    await vscode.commands.executeCommand("irscope.showStageGraph", stage);
    assert.equal(await drawn, "3 nodes");
  });

  it("Choose Entry Script for This File keeps the choice in the settings of the folder", async () => {
    await openScript();
    const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration("irscope");
    try {
      const done = vscode.commands.executeCommand("irscope.chooseEntry");
      await pick(done, 0);
      assert.deepEqual(settings().get("run.entryOf"), { "train.py": "train.py --small" });
    } finally {
      await settings().update("run.entryOf", undefined, vscode.ConfigurationTarget.Workspace);
    }
  });

  it("Select Pipeline keeps the choice in the settings, and copies the command of one that is not installed", async () => {
    await openScript();
    const chosen = (): string | undefined =>
      vscode.workspace.getConfiguration("irscope").inspect<string>("pipeline")?.workspaceValue;
    try {
      await pick(vscode.commands.executeCommand("irscope.selectPipeline"), 1);
      assert.equal(chosen(), "torchscript");
      void vscode.commands.executeCommand("irscope.selectPipeline");
      await new Promise((resolve) => setTimeout(resolve, 1000));
      for (let steps = 0; steps < 2; steps += 1) {
        await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
      }
      await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
      await new Promise((resolve) => setTimeout(resolve, 500));
      await vscode.commands.executeCommand("notification.acceptPrimaryAction");
      const copied = await until("the command", async () => {
        const text = await vscode.env.clipboard.readText();
        return text.includes("pip install") && text;
      });
      assert.equal(copied, "/usr/bin/python3 -m pip install onnxruntime");
      assert.equal(chosen(), "torchscript", "what is not installed is not chosen");
    } finally {
      await vscode.workspace
        .getConfiguration("irscope")
        .update("pipeline", undefined, vscode.ConfigurationTarget.Workspace);
      await vscode.commands.executeCommand("notifications.clearAll");
    }
  });

  it("Choose Target keeps the devices in the settings, and none when none is chosen", async () => {
    await openScript();
    const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration("irscope");
    const chosen = (): string | undefined => settings().inspect<string>("target")?.workspaceValue;
    const accept = async (toggled: boolean): Promise<void> => {
      const done = vscode.commands.executeCommand("irscope.chooseTarget");
      await new Promise((resolve) => setTimeout(resolve, 1000));
      if (toggled) {
        await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
        await vscode.commands.executeCommand("workbench.action.quickPickManyToggle");
      }
      await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
      await done;
    };
    try {
      await settings().update("target", "my-board", vscode.ConfigurationTarget.Workspace);
      await accept(false);
      assert.equal(chosen(), "my-board", "a target that the catalogue does not have is kept");
      await settings().update("target", "h100", vscode.ConfigurationTarget.Workspace);
      await accept(true);
      assert.match(chosen() ?? "", /^(|a100,h100|h100,h200)$/);
    } finally {
      await settings().update("target", undefined, vscode.ConfigurationTarget.Workspace);
    }
  });

  it("Compare Pipelines compares those that are chosen on the active file, and shows the table", async () => {
    const { dock, server } = await internals();
    const editor = await openScript();
    let drawn = false;
    const subscription = dock.onDidDraw((what) => (drawn ||= what === "the comparison"));
    const comparing = vscode.commands.executeCommand("irscope.comparePipelines");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    // To the first one, and from there to the second.
    await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
    await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
    await vscode.commands.executeCommand("workbench.action.quickPickManyToggle");
    await pick(comparing);
    const { compared } = await server.request(
      new RequestType<object, { compared: object[] }, void>("test/checked"),
      {},
    );
    const uri = editor.document.uri.toString();
    const chosen = ["inductor", "torchscript"];
    assert.deepEqual(compared, [{ uri, pipelines: chosen }], "that of the settings, and the one that was chosen");
    await until("the table", () => drawn);
    subscription.dispose();
  });

  it("Profile This File measures the active file, and shows the time", async () => {
    const { dock, server } = await internals();
    const editor = await openScript();
    // A page that shows this run already would draw nothing.
    await vscode.commands.executeCommand("workbench.action.closePanel");
    let drawn = false;
    const subscription = dock.onDidDraw((what) => (drawn ||= what === "the measured time"));
    await vscode.commands.executeCommand("irscope.profile");
    const { compared } = await server.request(
      new RequestType<object, { compared: object[] }, void>("test/checked"),
      {},
    );
    assert.deepEqual(compared.at(-1), { uri: editor.document.uri.toString() });
    await until("the measured time", () => drawn);
    subscription.dispose();
  });

  it("Profile This File Against measures against what is chosen", async () => {
    const { server } = await internals();
    const editor = await openScript();
    const profiling = vscode.commands.executeCommand("irscope.profileAgainst");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    // Without breaks is the first one, and the first pipeline that is not Inductor the second.
    for (let row = 0; row < 2; row++) {
      await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
      await vscode.commands.executeCommand("workbench.action.quickPickManyToggle");
    }
    await pick(profiling);
    const { compared } = await server.request(
      new RequestType<object, { compared: object[] }, void>("test/checked"),
      {},
    );
    const uri = editor.document.uri.toString();
    assert.deepEqual(compared.at(-1), { uri, against: ["torchscript"], withoutBreaks: true });
  });

  it("Open Trace asks the server for a run, and reveals it in the tree", async () => {
    const { server, tree } = await internals();
    await elements();
    const trace = vscode.Uri.file("/tmp/trace/dedicated_log_torch_trace_abc.log");
    await vscode.commands.executeCommand("irscope.openTrace", trace);
    const { opened } = await server.request(
      new RequestType<object, { opened: { uri: string }[] }, void>("test/checked"),
      {},
    );
    assert.deepEqual(
      opened.map(({ uri }) => uri),
      [trace.toString()],
    );
    await until("the run", () => tree.view.selection[0]?.kind === "run");
  });

  it("Open Artifact shows what is in an artifact, and marks the lines that it does not fit", async () => {
    await vscode.commands.executeCommand("irscope.openArtifact", vscode.Uri.file("/tmp/model.pt2"));
    await until(
      "the text",
      () => vscode.window.activeTextEditor?.document.getText().startsWith("model.pt2: AOT") ?? false,
    );
    const [found, ...more] = vscode.languages.getDiagnostics(vscode.Uri.file("/tmp/model.py"));
    assert.deepEqual(more, []);
    assert.equal(found?.range.start.line, 2);
    assert.match(found?.message ?? "", /now: \[4, 128\]/);
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  });

  it("Debug Compilation launches the active file, Debug Stored Run attaches to a run", async () => {
    const { run } = await elements();
    const [launched] = await debugged("irscope.debug");
    assert.equal(launched?.request, "launch");
    assert.match(String(launched["program"]), /train\.py$/);
    assert.match(String(launched["store"]), /runs\.sqlite$/);
    assert.equal(launched["pipeline"], "inductor");
    const settings = vscode.workspace.getConfiguration("irscope");
    await settings.update("pipeline", "export", vscode.ConfigurationTarget.Global);
    try {
      const [other] = await debugged("irscope.debug");
      assert.equal(other?.["pipeline"], "export", "that of deep runs");
    } finally {
      await settings.update("pipeline", undefined, vscode.ConfigurationTarget.Global);
    }
    const [attached] = await debugged("irscope.debugRun", run);
    assert.deepEqual([attached?.request, attached?.["run"]], ["attach", "20261120-101500-fake"]);
    const [newest] = await debugged("irscope.debugRun");
    assert.deepEqual([newest?.request, newest?.["run"]], ["attach", undefined]);
  });

  it("Show Value as Picture opens one panel, also while nothing is debugged", async () => {
    await openScript();
    for (let times = 0; times < 2; times += 1) {
      await vscode.commands.executeCommand("irscope.showValue");
      await until("the panel", () => tabs().includes("Value"));
    }
    assert.deepEqual(tabs(), ["train.py", "Value"]);
  });

  it("Debug Side by Side debugs nothing without the debugger of Python", async () => {
    await openScript();
    assert.equal(vscode.extensions.getExtension("ms-python.debugpy"), undefined, "as long as it is not installed here");
    const done = debugged("irscope.debugSideBySide");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await vscode.commands.executeCommand("notifications.clearAll"); // It asks whether to show the extension.
    assert.deepEqual(await done, []);
  });
});

describe("Show Generated Kernel", () => {
  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  const kernel = (): Promise<vscode.TextEditor> =>
    until("the kernel", () =>
      vscode.window.visibleTextEditors.find(({ document }) => document.uri.path.endsWith("cpp_fused_mul_relu_0.cpp")),
    );

  it("works from a function, on its def, with a choice of its kernels", async () => {
    const editor = await openScript();
    editor.selection = new vscode.Selection(3, 0, 3, 0);
    const done = vscode.commands.executeCommand("irscope.showKernel");
    await pick(done, 1);
    assert.equal((await kernel()).selection.active.line, 3, "the second one was chosen");
  });

  it("works from a finding: an action of its line, with a choice of its kernels", async () => {
    const { document } = await openScript();
    const [finding] = await until("the finding", () => {
      const found = vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source === "irscope");
      return found.length > 0 && found;
    });
    assert.ok(finding);
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      finding.range,
    );
    const action = actions.find(({ title }) => title === "Show Generated Kernel");
    assert.equal(action?.command?.command, "irscope.showKernel");
    const done = vscode.commands.executeCommand(action.command.command, ...((action.command.arguments ?? []) as []));
    await pick(done, 1);
    assert.equal((await kernel()).selection.active.line, 3, "the second one was chosen");
  });

  it("works from a node of a graph, in its text", async () => {
    await openScript(); // The fake server's run is about it.
    const uri = vscode.Uri.parse("irscope:/20261120-101500-fake/0/0/dynamo-graph.py");
    const editor = await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    editor.selection = new vscode.Selection(1, 4, 1, 4);
    await vscode.commands.executeCommand("irscope.showKernel");
    assert.equal((await kernel()).selection.active.line, 2);
  });
});
