/** Lists to choose from, and which item of the one on the screen is marked. */

import * as vscode from "vscode";

/**
 * Undefined while no list with items is shown. Tests wait for it: the editor has no event that says a list is there.
 * Of a list that its caller fills, all of it.
 */
export const shown: {
  active: vscode.QuickPickItem | undefined;
  list?: vscode.QuickPick<vscode.QuickPickItem> | undefined;
} = { active: undefined };

/** Asks for one of the items. */
export function choose<Item extends vscode.QuickPickItem>(
  items: readonly Item[],
  options: vscode.QuickPickOptions,
): Promise<Item | undefined> {
  return answered(vscode.window.showQuickPick(items, { ...options, onDidSelectItem: follow }));
}

/** Asks for any number of the items. */
export function chooseMany<Item extends vscode.QuickPickItem>(
  items: readonly Item[],
  options: vscode.QuickPickOptions,
): Promise<readonly Item[] | undefined> {
  return answered(vscode.window.showQuickPick(items, { ...options, canPickMany: true, onDidSelectItem: follow }));
}

/** A list that the caller fills, shows and disposes of. */
export function newList<Item extends vscode.QuickPickItem>(): vscode.QuickPick<Item> {
  const list = vscode.window.createQuickPick<Item>();
  shown.list = list;
  list.onDidChangeActive(([item]) => (shown.active = item));
  list.onDidHide(() => (shown.active = shown.list = undefined));
  return list;
}

function follow(item: vscode.QuickPickItem | string): void {
  shown.active = typeof item === "string" ? undefined : item;
}

async function answered<Answer>(list: Thenable<Answer>): Promise<Answer> {
  try {
    return await list;
  } finally {
    shown.active = undefined;
  }
}
