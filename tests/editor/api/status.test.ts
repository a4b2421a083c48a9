/** The status item: what it says of the worker, of the last run and of trouble, and what can be done from it. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import { closeAll, internals, openScript, pick, until } from "./help";

/** Has the server with canned answers send a notification. */
const Tell = new RequestType<{ method: string; params: object }, null, void>("test/tell");

const Die = new RequestType<object, null, void>("test/die");
/** Ends the server; for a second before that it cannot be written to, while its output is open. */
const DieSlowly = new RequestType<object, null, void>("test/dieSlowly");
const Environment = new RequestType<object, { pid: number }, void>("test/environment");

async function tell(method: string, params: object): Promise<void> {
  const { server } = await internals();
  await server.request(Tell, { method, params });
}

async function item(): Promise<vscode.StatusBarItem> {
  return (await internals()).status.item;
}

async function tooltip(): Promise<string> {
  const given = (await item()).tooltip;
  assert.ok(given instanceof vscode.MarkdownString);
  return given.value;
}

describe("the status item", () => {
  beforeEach(async () => {
    await closeAll();
    await internals();
  });

  after(() => tell("irscope/worker", { state: "ready", text: "Ready", python: "", uri: null, run: null }));

  it("tells in one line what a run changed, as text, until the next edit, and leads to the changes", async () => {
    const editor = await openScript();
    await vscode.commands.executeCommand("irscope.run");
    const status = await item();
    await until(
      "the change",
      () => status.text === "$(warning) IRScope: 3 causes cost 55 of 66 s · 1 <b>break</b> fixed · −0.4 s",
    );
    const said = await tooltip();
    assert.match(said, /\[1 \\<b\\>break\\<\\\/b\\> fixed.*\]\(command:irscope\.showChanges "/, "escaped");
    assert.deepEqual((status.tooltip as vscode.MarkdownString).isTrusted, {
      enabledCommands: ["irscope.showChanges", "irscope.showLog", "irscope.restartServer"],
    });
    assert.match(status.accessibilityInformation?.label ?? "", /fixed/);
    await tell("irscope/fileState", {
      uri: editor.document.uri.toString(),
      state: "stale",
      entry: null,
      limit: null,
      text: "Edited since the last run.",
      changed: { run: "r", since: "s", text: "1 break fixed" },
    });
    await until("the edit", () => status.text === "$(history) IRScope: edited");
    assert.match(await tooltip(), /1 break fixed/, "still in the hover");
    await tell("irscope/fileState", {
      uri: editor.document.uri.toString(),
      state: "current",
      entry: null,
      limit: "seconds",
      text: "The run was stopped.",
      changed: { run: "r", since: "s", text: "1 break fixed" },
    });
    await until("the limit", () => status.text === "$(watch) IRScope: stopped at limit");
    assert.match(await tooltip(), /1 break fixed/, "still in the hover");
  });

  it("keeps what it says of the last script while a graph, or any webview, is in front", async () => {
    await openScript();
    await vscode.commands.executeCommand("irscope.run");
    const status = await item();
    await until("the verdict", () => status.text.startsWith("$(warning) IRScope: 3 causes"));
    const panel = vscode.window.createWebviewPanel("test", "A graph", vscode.ViewColumn.Active);
    await until("the webview", () => vscode.window.activeTextEditor === undefined);
    assert.match(status.text, /3 causes cost 55 of 66 s/);
    panel.dispose();
  });

  it("tells the phase of a run, and of trouble what it is, with a way to the log", async () => {
    await openScript();
    const status = await item();
    const worker = { python: "/usr/bin/python3", uri: null, run: null };
    const phase = "compiling kernel 12 of 40";
    await tell("irscope/worker", { ...worker, state: "running", text: "Running train.py (deep lane)", phase });
    await until("the phase", () => status.text === `$(sync~spin) IRScope: ${phase}`);
    assert.doesNotMatch(await tooltip(), /showLog/);
    await tell("irscope/worker", {
      ...worker,
      state: "refused",
      text: "There is no torch. Install it: pip install torch",
    });
    await until("the refusal", () => status.text === "$(circle-slash) IRScope: cannot run");
    assert.match(await tooltip(), /There is no torch.*\[Show Log\]\(command:irscope\.showLog\)/s);
    assert.ok(status.backgroundColor);
    await tell("irscope/worker", { ...worker, state: "crashed", text: "train.py: The script was killed by SIGSEGV." });
    await until("the crash", () => status.text === "$(flame) IRScope: crashed");
    await tell("irscope/worker", { ...worker, uri: "file:///w/other.py", state: "crashed", text: "other.py: killed" });
    await until("that the crash is of another file", () => !status.text.includes("crashed"));
    assert.doesNotMatch(await tooltip(), /other\.py|Show Log/);
  });

  it("tells of a server that has died, and works again when it is back", async () => {
    await openScript();
    const { server } = await internals();
    const seen: string[] = [];
    const listening = server.onDidChangeState((state) => seen.push(`${state} ${server.status().problem}`));
    const pid = await server.request(Environment, {});
    await server.request(Die, {}).catch(() => undefined);
    await until("the end", () => seen.some((each) => each.startsWith("failed The language server stopped.")));
    await until("the server", () => server.status().state === "ready");
    listening.dispose();
    assert.notEqual((await server.request(Environment, {})).pid, pid.pid);
    await vscode.commands.executeCommand("irscope.showKernel", { line: 4 });
    await until("the status", async () => /Ready/.test(await tooltip()));
  });

  it("starts a server again to which many messages could not be written before it ended", async () => {
    await openScript();
    const { server } = await internals();
    const { pid } = await server.request(Environment, {});
    const dying = server.request(DieSlowly, {}).catch(() => undefined);
    const lost = Array.from({ length: 20 }, () => server.request(Environment, {}).catch(() => undefined));
    await Promise.all([dying, ...lost]);
    const now = async () => (await server.request(Environment, {}).catch(() => undefined))?.pid;
    await until("another server", async () => ![pid, undefined].includes(await now()));
  });

  it("says what to do where there is no interpreter, with a way to the log and to try again", async () => {
    const { server } = await internals();
    await openScript();
    const settings = vscode.workspace.getConfiguration("irscope");
    const first = server.status().interpreter?.path;
    await settings.update("python", "/nowhere/python", true);
    try {
      await until("the failure", () => server.status().state === "failed");
      const status = await item();
      await until("the item", () => status.text === "$(error) IRScope: not running");
      const said = await tooltip();
      assert.match(said, /could not be started.*irscope\\?\.python/s);
      assert.match(
        said,
        /\[Show Log\]\(command:irscope\.showLog\) · \[Restart Server\]\(command:irscope\.restartServer\)/,
      );
      await pick(vscode.commands.executeCommand("irscope.showMenu"), 0);
      await until("the settings", () => vscode.window.tabGroups.activeTabGroup.activeTab?.label === "Settings");
    } finally {
      await closeAll();
      await settings.update("python", first, true);
      await until("recovery", () => server.status().state === "ready");
    }
  });
});
