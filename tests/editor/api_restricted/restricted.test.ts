import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import { internals, openScript, until } from "../api/help";

describe("in Restricted Mode", () => {
  it("the server runs with the user's own interpreter and is told to run nothing", async () => {
    assert.equal(vscode.workspace.isTrusted, false);
    await openScript();
    const { server } = await internals();
    await until("the server", () => server.status().state === "ready");
    assert.equal(server.status().interpreter?.source, "setting");
    type Environment = { options: Record<string, unknown> };
    const { options } = await server.request(new RequestType<object, Environment, void>("test/environment"), {});
    assert.equal(options["trusted"], false);
  });

  it("the workspace's own interpreter setting is not used", async () => {
    const { server } = await internals();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    assert.ok(folder);
    const text = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(folder, ".vscode", "settings.json"));
    const inWorkspace = (JSON.parse(new TextDecoder().decode(text)) as Record<string, string>)["irscope.python"];
    assert.equal(inWorkspace, "/workspace/trap/python", "the fixture has the setting");
    assert.notEqual(server.status().interpreter?.path, inWorkspace);
  });

  it("Analyze This File runs nothing", async () => {
    const { tree } = await internals();
    await openScript();
    void vscode.commands.executeCommand("irscope.run");
    void vscode.commands.executeCommand("irscope.checkWithoutCompile");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.deepEqual(await tree.getChildren(), []);
    const { server } = await internals();
    const { checked } = await server.request(new RequestType<object, { checked: object[] }, void>("test/checked"), {});
    assert.deepEqual(checked, []);
  });
});
