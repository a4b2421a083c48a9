/** IRScope: Analyze This File, Run Again, Check Without Compile, Cancel Run. */

import * as path from "node:path";
import * as vscode from "vscode";
import { activeNotebook } from "../host/notebooks";
import type { Lane } from "../protocol";
import { CancelRequest, CheckRequest, RunRequest } from "../host/requests";
import { showWithLog } from "../host/problems";
import { offerEntries } from "./chooseEntry";
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
