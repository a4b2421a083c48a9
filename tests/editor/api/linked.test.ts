import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { closeAll, internals, openScript, until, visibleDocument } from "./help";

const RUN = "irscope:/20261120-101500-fake";
const GRAPH = `${RUN}/0/0/dynamo-graph.py`;
const KERNEL = `${RUN}/0/0/kernel/cpp_fused_mul_relu_0.cpp`;

async function openBeside(uri: string): Promise<vscode.TextEditor> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  return vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true });
}

describe("linked editors", () => {
  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  it("the same line of the source has the same colour in all open views", async () => {
    const { linked } = await internals();
    const source = await openScript();
    await vscode.commands.executeCommand("irscope.run");
    await openBeside(GRAPH);
    const paintings = await until("colours in both", () => {
      const own = linked.painted.get(source.document.uri.toString());
      const graph = linked.painted.get(vscode.Uri.parse(GRAPH).toString());
      return own !== undefined && graph !== undefined && { own, graph };
    });
    assert.deepEqual(paintings.own.bySlot[3], [4]);
    assert.deepEqual(paintings.graph.bySlot[3], [1]);
    assert.deepEqual(paintings.own.bySlot[4], [5]);
    assert.deepEqual(paintings.graph.bySlot[4], [2]);
    assert.deepEqual(paintings.own.several, [3], "a line that calls what was compiled");
  });

  it("lines of several origins name them, once in a row", async () => {
    const { linked } = await internals();
    await openScript();
    await openBeside(KERNEL);
    const painting = await until("colours", () => linked.painted.get(vscode.Uri.parse(KERNEL).toString()));
    assert.deepEqual(painting.several, [2, 3]);
    assert.deepEqual(
      painting.chips.map(({ line, text, slot }) => [line, text, slot]),
      [
        [2, "5", 3],
        [2, "6", 4],
      ],
    );
  });

  it("the cursor marks its counterparts in the others, and stays where it is", async () => {
    const { linked } = await internals();
    const source = await openScript();
    await openBeside(GRAPH);
    await vscode.window.showTextDocument(source.document, vscode.ViewColumn.One);
    const editor = vscode.window.activeTextEditor;
    assert.ok(editor);
    editor.selection = new vscode.Selection(5, 0, 5, 0);
    const graph = vscode.Uri.parse(GRAPH).toString();
    await until("the mark", () => linked.marked.get(graph)?.join() === "2");
    assert.equal(vscode.window.activeTextEditor?.document.uri.toString(), source.document.uri.toString());
    const before = visibleDocument("dynamo-graph.py")?.selection.active.line;
    editor.selection = new vscode.Selection(4, 0, 4, 0);
    await until("the next mark", () => linked.marked.get(graph)?.join() === "1");
    assert.equal(visibleDocument("dynamo-graph.py")?.selection.active.line, before, "no ping-pong");
  });

  it("Toggle Line Colours takes colours and marks away, and brings them back", async () => {
    const { linked } = await internals();
    await openScript();
    await openBeside(GRAPH);
    await until("colours", () => linked.painted.size === 2);
    await vscode.commands.executeCommand("irscope.toggleLineColours");
    assert.equal(linked.enabled, false);
    assert.equal(linked.painted.size + linked.marked.size, 0);
    await vscode.commands.executeCommand("irscope.toggleLineColours");
    await until("colours again", () => linked.painted.size === 2);
  });

  it("nothing is coloured without a stage on the screen", async () => {
    const { linked } = await internals();
    await openScript();
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(linked.painted.size, 0);
  });

  it("Show Generated Kernel works from a place that is named, and from a line of a stage", async () => {
    await openScript();
    await vscode.commands.executeCommand("irscope.showKernel", { uri: GRAPH, line: 1 });
    await until("the kernel", () => visibleDocument("cpp_fused_mul_relu_0.cpp"));
    await closeAll();
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(vscode.Uri.parse(GRAPH)));
    await vscode.commands.executeCommand("irscope.showKernel");
    const kernel = await until("the kernel", () => visibleDocument("cpp_fused_mul_relu_0.cpp"));
    assert.equal(kernel.viewColumn, vscode.ViewColumn.Two);
    assert.equal(vscode.window.activeTextEditor?.document.uri.path.endsWith("dynamo-graph.py"), true);
  });

  it("the languages of the lower stages are known to the editor", async () => {
    const known = await vscode.languages.getLanguages();
    for (const language of ["mlir", "llvm", "ptx", "sass", "asm", "python-bytecode", "irscope-guards", "cpp"]) {
      assert.ok(known.includes(language), language);
    }
  });
});
