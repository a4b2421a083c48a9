/** IRScope: Open Trace… — what PyTorch recorded elsewhere, as a run. */

import * as path from "node:path";
import * as vscode from "vscode";
import { OpenTraceRequest } from "../host/requests";
import { showProblem, withRunProgress, type Services } from "./context";
import { choose } from "../host/lists";

export async function openTrace(services: Services, given?: vscode.Uri): Promise<void> {
  const trace = given ?? (await pickTrace());
  if (trace === undefined) {
    return;
  }
  const folder = vscode.workspace.getWorkspaceFolder(trace) ?? vscode.workspace.workspaceFolders?.[0];
  const title = vscode.l10n.t("opening {0}", path.basename(trace.fsPath));
  const { run, message } = await withRunProgress(services, title, trace, (token) =>
    services.server.request(OpenTraceRequest, { uri: trace.toString(), folder: folder?.uri.toString() ?? "" }, token),
  );
  if (run === null) {
    void showProblem(services, message);
    return;
  }
  await services.tree.reveal(run);
}

/** A dialog of most systems picks either files or folders, so what it is comes first. */
async function pickTrace(): Promise<vscode.Uri | undefined> {
  const folder = { label: vscode.l10n.t("Folder"), detail: vscode.l10n.t("What TORCH_TRACE names") };
  const file = { label: vscode.l10n.t("File"), detail: vscode.l10n.t("A log, an archive, or raw.jsonl of tlparse") };
  const chosen = await choose([folder, file], {
    title: vscode.l10n.t("Open a trace that was recorded elsewhere"),
  });
  if (chosen === undefined) {
    return undefined;
  }
  const picked = await vscode.window.showOpenDialog({
    canSelectFiles: chosen === file,
    canSelectFolders: chosen === folder,
    canSelectMany: false,
    openLabel: vscode.l10n.t("Open Trace"),
  });
  return picked?.[0];
}
