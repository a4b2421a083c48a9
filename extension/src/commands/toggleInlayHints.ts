/** IRScope: Toggle Inlay Hints — shapes and dtypes of compiled lines, in the source. */

import * as vscode from "vscode";
import { SECTION } from "../host/settings";

const SETTING = "inlayHints.enabled";

export async function toggleInlayHints(): Promise<void> {
  const settings = vscode.workspace.getConfiguration(SECTION);
  const on = !settings.get<boolean>(SETTING, false);
  const { Global, Workspace } = vscode.ConfigurationTarget;
  await settings.update(SETTING, on, settings.inspect(SETTING)?.workspaceValue === undefined ? Global : Workspace);
  const editor = vscode.workspace.getConfiguration("editor", vscode.window.activeTextEditor?.document.uri);
  if (on && editor.get<string>("inlayHints.enabled") === "off") {
    const open = vscode.l10n.t("Open Setting");
    const message = vscode.l10n.t(
      "IRScope: the editor's own setting editor.inlayHints.enabled is off, so no hint is shown.",
    );
    if ((await vscode.window.showInformationMessage(message, open)) === open) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "editor.inlayHints.enabled");
    }
  }
}
