/** Messages about what went wrong: the text says what to do next, and a button leads to the log. */

import * as vscode from "vscode";
import { withoutLinks } from "./plainText";

const LOG = vscode.l10n.t("Show Log");
const INTERPRETER = vscode.l10n.t("Choose an Interpreter");
/** What messages say that can be helped by another interpreter; a translation keeps the name of the setting. */
const ABOUT_INTERPRETER = /irscope\.python|another interpreter/;

/** Shows one message with its actions, and does what is chosen. The last action of each is the log. */
export async function showWithLog(
  kind: "warning" | "error" | "information",
  message: string,
  actions: Record<string, () => unknown> = {},
): Promise<void> {
  const show = {
    warning: vscode.window.showWarningMessage,
    error: vscode.window.showErrorMessage,
    information: vscode.window.showInformationMessage,
  }[kind];
  const offered = ABOUT_INTERPRETER.test(message) ? { [INTERPRETER]: chooseInterpreter, ...actions } : actions;
  const text = withoutLinks(message.startsWith("IRScope:") ? message : `IRScope: ${message}`);
  const chosen = await show(text, ...Object.keys(offered), LOG);
  if (chosen === LOG) {
    await vscode.commands.executeCommand("irscope.showLog");
  } else if (chosen !== undefined) {
    await offered[chosen]?.();
  }
}

/** Opens the setting: the workspace's, since in a remote window the user's settings do not have it. */
export function chooseInterpreter(): Thenable<unknown> {
  return vscode.workspace.workspaceFolders === undefined
    ? vscode.commands.executeCommand("workbench.action.openSettings", "irscope.python")
    : vscode.commands.executeCommand("workbench.action.openWorkspaceSettings", { query: "irscope.python" });
}
