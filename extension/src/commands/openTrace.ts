/** IRScope: Open Trace… and Open Artifact… — what PyTorch recorded elsewhere, as a run, and what was compiled elsewhere. */

import * as path from "node:path";
import * as vscode from "vscode";
import { OpenTraceRequest } from "../host/requests";
import { showProblem, withRunProgress, type Services } from "./context";
import { choose } from "../host/lists";
import type { ArtifactPlace } from "../protocol";

/** What an artifact does not fit is marked at its lines until the next one is opened. */
let marked: vscode.DiagnosticCollection | undefined;

export async function openTrace(services: Services, given?: vscode.Uri): Promise<void> {
  await open(services, given ?? (await pickTrace()));
}

/** Lists an artifact, and compares it with the run that is selected in the tree. The server neither unpickles nor executes it. */
export async function openArtifact(services: Services, given?: vscode.Uri): Promise<void> {
  const selected = services.tree.view.selection[0];
  await open(services, given ?? (await pickArtifact()), selected?.kind === "run" ? selected.item.run : undefined);
}

async function open(services: Services, trace: vscode.Uri | undefined, against?: string): Promise<void> {
  if (trace === undefined) {
    return;
  }
  const folder = vscode.workspace.getWorkspaceFolder(trace) ?? vscode.workspace.workspaceFolders?.[0];
  const title = vscode.l10n.t("opening {0}", path.basename(trace.fsPath));
  const asked = { uri: trace.toString(), folder: folder?.uri.toString() ?? "", run: against ?? "" };
  const { run, message, text, places } = await withRunProgress(services, title, trace, (token) =>
    services.server.request(OpenTraceRequest, asked, token),
  );
  if (text !== "") {
    await showArtifact(text, places);
  } else if (run === null) {
    void showProblem(services, message);
  }
  if (run !== null) {
    await services.tree.reveal(run);
  }
}

async function showArtifact(text: string, places: ArtifactPlace[]): Promise<void> {
  marked ??= vscode.languages.createDiagnosticCollection("irscope-artifact");
  marked.clear();
  const found = new Map<string, vscode.Diagnostic[]>();
  for (const { what, file, line } of places) {
    const whole = new vscode.Range(line - 1, 0, line - 1, Number.MAX_SAFE_INTEGER);
    const diagnostic = new vscode.Diagnostic(whole, what, vscode.DiagnosticSeverity.Warning);
    diagnostic.source = "irscope";
    found.set(file, [...(found.get(file) ?? []), diagnostic]);
  }
  for (const [file, diagnostics] of found) {
    marked.set(vscode.Uri.file(file), diagnostics);
  }
  const document = await vscode.workspace.openTextDocument({ content: text, language: "plaintext" });
  await vscode.window.showTextDocument(document);
}

async function pickArtifact(): Promise<vscode.Uri | undefined> {
  const folder = { label: vscode.l10n.t("Folder"), detail: vscode.l10n.t("Compile caches, or an unpacked artifact") };
  const file = { label: vscode.l10n.t("File"), detail: vscode.l10n.t("A package, a saved function, or a Mega-Cache") };
  const title = vscode.l10n.t("Open an artifact that was compiled elsewhere");
  return pick(folder, file, title, vscode.l10n.t("Open Artifact"));
}

/** A dialog of most systems picks either files or folders, so what it is comes first. */
async function pick(
  folder: vscode.QuickPickItem,
  file: vscode.QuickPickItem,
  title: string,
  openLabel: string,
): Promise<vscode.Uri | undefined> {
  const chosen = await choose([folder, file], { title });
  if (chosen === undefined) {
    return undefined;
  }
  const picked = await vscode.window.showOpenDialog({
    canSelectFiles: chosen === file,
    canSelectFolders: chosen === folder,
    canSelectMany: false,
    openLabel,
  });
  return picked?.[0];
}

async function pickTrace(): Promise<vscode.Uri | undefined> {
  const folder = { label: vscode.l10n.t("Folder"), detail: vscode.l10n.t("What TORCH_TRACE names") };
  const file = { label: vscode.l10n.t("File"), detail: vscode.l10n.t("A log, an archive, or raw.jsonl of tlparse") };
  const title = vscode.l10n.t("Open a trace that was recorded elsewhere");
  return pick(folder, file, title, vscode.l10n.t("Open Trace"));
}
