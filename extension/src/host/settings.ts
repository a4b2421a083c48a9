/** Reading the `irscope.*` settings of package.json, and expanding the paths in them. */

import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";

export const SECTION = "irscope";

/** A setting that holds a path; empty if the user gave none. */
export function pathSetting(name: string, scope?: vscode.Uri): string {
  const raw = vscode.workspace.getConfiguration(SECTION, scope ?? null).get<string>(name, "");
  return expandPath(raw.trim(), folderOf(scope));
}

/** Expands `~` and `${workspaceFolder}`, and makes a path with a separator absolute. A bare name is left for the PATH. */
export function expandPath(raw: string, folder: string | undefined): string {
  if (raw === "") {
    return "";
  }
  let expanded = raw.replace(/^~(?=$|[/\\])/, os.homedir());
  expanded = expanded.replaceAll("${userHome}", os.homedir());
  if (folder !== undefined) {
    expanded = expanded.replaceAll("${workspaceFolder}", folder);
  }
  if (/[/\\]/.test(expanded) && !path.isAbsolute(expanded) && folder !== undefined) {
    return path.join(folder, expanded);
  }
  return expanded;
}

/** The folder that relative paths start at: the document's workspace folder, else the first one. */
export function folderOf(scope?: vscode.Uri): string | undefined {
  const folder = scope === undefined ? undefined : vscode.workspace.getWorkspaceFolder(scope);
  return (folder ?? vscode.workspace.workspaceFolders?.[0])?.uri.fsPath;
}
