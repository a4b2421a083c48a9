/** Messages about what went wrong: what to do next stands in the text, and a button leads to the log. */

import * as vscode from "vscode";
import { withoutLinks } from "./plainText";

const LOG = "Show Log";

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
  const text = withoutLinks(message.startsWith("IRScope:") ? message : `IRScope: ${message}`);
  const chosen = await show(text, ...Object.keys(actions), LOG);
  if (chosen === LOG) {
    await vscode.commands.executeCommand("irscope.showLog");
  } else if (chosen !== undefined) {
    await actions[chosen]?.();
  }
}
