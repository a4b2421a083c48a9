/** IRScope: Analyze This File, Run Again, Choose Entry Script for This File, Check Without Compile, Cancel Run. */

import * as path from "node:path";
import * as vscode from "vscode";
import { activeNotebook } from "../host/notebooks";
import type { Lane } from "../protocol";
import { withoutLinks } from "../host/plainText";
import { CancelRequest, CheckRequest, RunRequest } from "../host/requests";
import { showWithLog } from "../host/problems";
import { SECTION } from "../host/settings";
import { chooseEntry } from "./chooseEntry";
import { activePythonFile, requireTrust, showProblem, withRunProgress, type Services } from "./context";

/** Outcomes that are no news to the user who watched the run, or that the file's diagnostics tell already. */
const QUIET_OUTCOMES = new Set(["completed", "cancelled"]);

/** Runs the active file, or all cells of the active notebook, through the whole pipeline. */
export async function runActiveFile(services: Services): Promise<void> {
  const uri = activeNotebook()?.uri ?? activePythonFile()?.document.uri;
  if (uri !== undefined) {
    await runFile(services, uri, "deep");
  }
}

/** @param what the entry and the pipeline; without them those of the settings */
export async function runFile(
  services: Services,
  uri: vscode.Uri,
  lane: Lane,
  what: { entry?: string | undefined; pipeline?: string } = {},
): Promise<void> {
  if (!(await requireTrust())) {
    return;
  }
  const name = path.basename(uri.fsPath);
  const { outcome, message, compiles } = await withRunProgress(
    services,
    vscode.l10n.t("running {0}", name),
    uri,
    (token) =>
      services.server.request(
        RunRequest,
        {
          uri: uri.toString(),
          lane,
          ...(what.entry === undefined ? {} : { entry: what.entry }),
          ...(what.pipeline === undefined ? {} : { pipeline: what.pipeline }),
        },
        token,
      ),
  );
  if (outcome === "no-entry") {
    void offerEntries(services, uri, message);
    return;
  }
  if (!QUIET_OUTCOMES.has(outcome)) {
    void showProblem(services, message || `${name}: ${outcome}`);
  } else if (outcome === "completed" && compiles === 0) {
    void showWithLog(
      "information",
      vscode.l10n.t(
        "{0} ran to its end, and nothing was compiled: it calls no function that torch.compile made.",
        name,
      ),
    );
  }
}

/** Lets the user choose what runs a file, the active one if none is given, and runs the choice. */
export async function runWithChosenEntry(services: Services, given?: string): Promise<void> {
  const uri = given === undefined ? activePythonFile()?.document.uri : vscode.Uri.parse(given);
  if (uri === undefined || !(await requireTrust()) || !(await chooseEntry(services, uri))) {
    return;
  }
  // Else the server runs what has changed.
  if (vscode.workspace.getConfiguration(SECTION, uri).get<string>("run.onSave") === "off") {
    await runFile(services, uri, "fast");
  }
}

/** Says that no script is known to run a file, and offers to choose. */
async function offerEntries(services: Services, uri: vscode.Uri, message: string): Promise<void> {
  const choose = vscode.l10n.t("Choose Entry Script");
  if ((await vscode.window.showInformationMessage(`IRScope: ${withoutLinks(message)}`, choose)) === choose) {
    await runWithChosenEntry(services, uri.toString());
  }
}

/**
 * Runs what failed inside compiled code once more, without compile, and says whether it fails there, too.
 *
 * @param failed the document and the run of the finding; those of the active file where it is left out
 */
export async function checkWithoutCompile(services: Services, failed?: { uri?: string; run?: string }): Promise<void> {
  const uri =
    failed?.uri === undefined
      ? (activeNotebook()?.uri ?? activePythonFile()?.document.uri)
      : vscode.Uri.parse(failed.uri, true);
  if (uri === undefined || !(await requireTrust())) {
    return;
  }
  const title = vscode.l10n.t("checking {0} without compile", path.basename(uri.fsPath));
  const { message } = await withRunProgress(services, title, uri, (token) =>
    services.server.request(
      CheckRequest,
      { uri: uri.toString(), ...(failed?.run === undefined ? {} : { run: failed.run }) },
      token,
    ),
  );
  void showWithLog("information", message);
}

/** Cancels the run that is under way, else that of the active file. */
export async function cancelRun(services: Services): Promise<void> {
  const uri = services.status.runningUri() ?? vscode.window.activeTextEditor?.document.uri.toString();
  if (uri !== undefined) {
    await services.server.request(CancelRequest, { uri });
  }
}
