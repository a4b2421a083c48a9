/** What the tests in the extension host share. */

import * as assert from "node:assert/strict";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Internals } from "../../../extension/src/activation/extension";

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
  const { lists } = await internals();
  let active = await until("a list", () => lists.active);
  for (let step = 0; step < steps; step += 1) {
    await vscode.commands.executeCommand("workbench.action.quickOpenSelectNext");
    const before = active;
    active = await until("the next item", () => lists.active !== before && lists.active);
  }
  await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
  await command;
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
