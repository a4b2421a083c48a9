/** What the tests in the extension host share. */

import * as assert from "node:assert/strict";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Internals } from "../../../extension/src/host/extension";

export const EXTENSION = "irscope.irscope";

export async function internals(): Promise<Internals> {
  const extension = vscode.extensions.getExtension<Internals>(EXTENSION);
  assert.ok(extension, `${EXTENSION} is not there`);
  return extension.activate();
}

export async function openScript(name = "train.py"): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert.ok(folder, "no folder is open");
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, name));
  return vscode.window.showTextDocument(document, vscode.ViewColumn.One);
}

/** Waits until `ask` gives something, and gives it. */
export async function until<Value>(
  what: string,
  ask: () => Value | undefined | false | PromiseLike<Value | undefined | false>,
  timeoutMs = 60_000,
): Promise<Value> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await ask();
    if (value !== undefined && value !== false) {
      return value;
    }
    if (Date.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Answers the quick pick of a command with the item that is `steps` below the first, and waits until it is done. */
export async function pick(command: Thenable<unknown>, steps = 0): Promise<void> {
  let waiting = true;
  const done = command.then(() => (waiting = false));
  while (waiting) {
    await new Promise((resolve) => setTimeout(resolve, 500)); // The list has no event that says it is shown.
    for (let step = 0; step < steps; step += 1) {
      await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
    }
    await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
    // Where it was not shown yet nothing was chosen: once more.
    await Promise.race([done, new Promise((resolve) => setTimeout(resolve, 3_000))]);
  }
  await done;
}

export function visibleDocument(ending: string): vscode.TextEditor | undefined {
  return vscode.window.visibleTextEditors.find((editor) => editor.document.uri.path.endsWith(ending));
}

export async function closeAll(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
}

export function fileName(uri: vscode.Uri): string {
  return path.basename(uri.path);
}
