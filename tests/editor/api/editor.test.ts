import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { closeAll, internals, openScript, until } from "./help";

describe("in the editor", () => {
  beforeEach(closeAll);

  it("the extension is activated by a Python file", async () => {
    await openScript();
    await until("activation", () => vscode.extensions.getExtension("irscope.irscope")?.isActive);
  });

  it("findings are diagnostics with code, link and range", async () => {
    const { document } = await openScript();
    const [finding] = await until("a diagnostic", () => {
      const found = vscode.languages.getDiagnostics(document.uri).filter((each) => each.source === "irscope");
      return found.length > 0 && found;
    });
    assert.ok(finding);
    assert.equal(finding.severity, vscode.DiagnosticSeverity.Warning);
    assert.equal(document.getText(finding.range), "y.sum() > 0");
    const code = finding.code as { value: string; target: vscode.Uri };
    assert.equal(code.value, "GB0170");
    assert.match(code.target.toString(), /gb0170\.html$/);
  });

  it("the lens says what became of the function", async () => {
    const { document } = await openScript();
    const lenses = await until("a lens", async () => {
      const found = await vscode.commands.executeCommand<vscode.CodeLens[]>(
        "vscode.executeCodeLensProvider",
        document.uri,
      );
      return found.length > 0 && found;
    });
    assert.equal(lenses[0]?.command?.title, "2 graphs · 1 break · 1 kernel · 1.8 s");
    assert.equal(lenses[0]?.command?.command, "irscope.showRun");
    assert.equal(document.lineAt(lenses[0]?.range.start.line ?? 0).text, "def loss_of(x):");
  });

  it("the server sees only what the extension carries, and the settings as they are meant", async () => {
    const { server } = await internals();
    const { RequestType } = await import("vscode-languageclient/node");
    type Environment = { options: Record<string, unknown>; path: string[]; isolated: number; no_site: number };
    const environment = await server.request(new RequestType<object, Environment, void>("test/environment"), {});
    assert.equal(environment.isolated, 1);
    assert.equal(environment.no_site, 1);
    assert.ok(!environment.path.some((entry) => entry.includes("site-packages")), environment.path.join("\n"));
    assert.equal(environment.options["trusted"], true);
    assert.equal(environment.options["python"], server.status().interpreter?.path);
    assert.match(String(environment.options["storePath"]), /runs\.sqlite$/);
    assert.deepEqual((environment.options["run"] as Record<string, unknown>)["onSave"], "fast");
  });

  it("the setting decides which interpreter is used, and the server is restarted only when it is another one", async () => {
    const { server } = await internals();
    const first = server.status().interpreter;
    assert.equal(first?.source, "setting");
    let restarts = 0;
    const subscription = server.onDidChangeState((state) => (restarts += state === "ready" ? 1 : 0));
    const settings = vscode.workspace.getConfiguration("irscope");
    try {
      // The same interpreter by another spelling: nothing happens.
      await settings.update("python", `  ${first?.path}  `, true);
      await new Promise((resolve) => setTimeout(resolve, 1500));
      assert.equal(restarts, 0);
      await settings.update("python", "/nowhere/python", true);
      await until("the failure", () => server.status().state === "failed");
      assert.match(server.status().problem, /\/nowhere\/python.*could not be started/);
      await settings.update("python", first?.path, true);
      await until("recovery", () => server.status().state === "ready");
      assert.equal(server.status().interpreter?.path, first?.path);
    } finally {
      subscription.dispose();
      await settings.update("python", first?.path, true);
      await until("recovery", () => server.status().state === "ready");
    }
  });

  it("a document that does not exist is an error, not an empty text", async () => {
    await assert.rejects(async () => vscode.workspace.openTextDocument(vscode.Uri.parse("irscope:/none/0/0/x.py")));
  });
});
