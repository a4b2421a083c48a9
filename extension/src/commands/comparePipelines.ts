/** IRScope: Compare Pipelines… — the active file through several pipelines, and the table of what each made of it. */

import * as path from "node:path";
import * as vscode from "vscode";
import { CompareRequest } from "../host/requests";
import { activePythonFile, requireTrust, showProblem, withRunProgress, type Services } from "./context";
import { pickPipelines } from "./selectPipeline";

export async function comparePipelines(services: Services): Promise<void> {
  const uri = activePythonFile()?.document.uri;
  if (uri === undefined || !(await requireTrust())) {
    return;
  }
  const pipelines = await pickPipelines(services, uri);
  if (pipelines.length === 0) {
    return;
  }
  const name = path.basename(uri.fsPath);
  const title = vscode.l10n.t("comparing pipelines of {0}", name);
  const { run, message } = await withRunProgress(services, title, uri, (token) =>
    services.server.request(CompareRequest, { uri: uri.toString(), pipelines }, token),
  );
  if (run === null) {
    void showProblem(services, message);
    return;
  }
  await services.dock.show("comparison", { run, title: vscode.l10n.t("{0}, comparison", name) });
}
