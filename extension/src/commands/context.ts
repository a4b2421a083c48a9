/** What every command needs. */

import * as vscode from "vscode";
import type { Channels } from "../host/channels";
import type { Dock } from "../host/dock";
import { partsOf, type Documents } from "../host/documents";
import type { FirstMinutes } from "../host/firstMinutes";
import type { LinkedEditors } from "../linked/linkedEditors";
import { activeCellEditor } from "../host/notebooks";
import { withoutLinks } from "../host/plainText";
import { showWithLog } from "../host/problems";
import type { GraphPanels } from "../host/graphPanels";
import { CancelRequest } from "../host/requests";
import type { RunsTree } from "../host/runsTree";
import { messageOf, ServerUnavailable, type Server } from "../host/server";
import type { StatusItem } from "../host/statusItem";

export interface Services {
  server: Server;
  documents: Documents;
  graphs: GraphPanels;
  linked: LinkedEditors;
  dock: Dock;
  tree: RunsTree;
  status: StatusItem;
  channels: Channels;
  firstMinutes: FirstMinutes;
}

/** Runs a command and turns what goes wrong into one message with a next step. */
export async function guarded(services: Services, command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    if (isCancellation(error)) {
      return;
    }
    services.channels.client.error(messageOf(error));
    // Not awaited: the command has ended, though its message may stay.
    void showProblem(services, messageOf(error), error instanceof ServerUnavailable);
  }
}

export async function showProblem(services: Services, message: string, offerRestart = false): Promise<void> {
  const restart = { [vscode.l10n.t("Restart Server")]: () => services.server.restart() };
  await showWithLog("warning", message, offerRestart ? restart : {});
}

/** The Python file a command is about: the active editor's or cell's, else the only one that is visible. Says what to do if there is none. */
export function activePythonFile(): vscode.TextEditor | undefined {
  const active = vscode.window.activeTextEditor ?? activeCellEditor();
  const [only, another] = (active === undefined ? vscode.window.visibleTextEditors : [active]).filter(
    ({ document }) => document.languageId === "python" && partsOf(document.uri) === undefined,
  );
  if (only !== undefined && another === undefined) {
    return only;
  }
  void vscode.window.showInformationMessage(
    vscode.l10n.t("IRScope: open the Python script first; this command works on the active editor."),
  );
  return undefined;
}

/** Running a script needs a trusted workspace; if it is not, offers to manage trust. */
export async function requireTrust(): Promise<boolean> {
  if (vscode.workspace.isTrusted) {
    return true;
  }
  const manage = vscode.l10n.t("Manage Workspace Trust");
  const chosen = await vscode.window.showWarningMessage(
    vscode.l10n.t("IRScope: this folder is in Restricted Mode, so no script of it is run."),
    manage,
  );
  if (chosen === manage) {
    await vscode.commands.executeCommand("workbench.trust.manage");
  }
  return false;
}

/** Work that is done in this time shows no progress: most questions are answered from a run that exists. */
const PROGRESS_DELAY_MS = 400;

/** Waits for work that may run the script: shows progress, and cancels the run when the user says so. */
export async function withRunProgress<Result>(
  services: Services,
  title: string,
  uri: vscode.Uri,
  work: (token: vscode.CancellationToken) => Promise<Result>,
): Promise<Result> {
  const cancellation = new vscode.CancellationTokenSource();
  let report: (message: string) => void = () => undefined;
  const working = services.server.reportingTo(
    (message) => report(message),
    () => work(cancellation.token),
  );
  const settled = working.then(
    () => true,
    () => true,
  );
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), PROGRESS_DELAY_MS));
  if (!(await Promise.race([settled, late]))) {
    await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: `IRScope: ${withoutLinks(title)}`, cancellable: true },
      async (progress, token) => {
        report = (message) => progress.report({ message: withoutLinks(message) });
        token.onCancellationRequested(() => {
          cancellation.cancel();
          void services.server.request(CancelRequest, { uri: uri.toString() }).catch(() => undefined);
        });
        await settled;
      },
    );
  }
  return working.finally(() => cancellation.dispose());
}

function isCancellation(error: unknown): boolean {
  // -32800 is LSP's RequestCancelled, -32802 its ServerCancelled.
  const code = (error as { code?: unknown } | undefined)?.code;
  return error instanceof vscode.CancellationError || code === -32800 || code === -32802;
}
