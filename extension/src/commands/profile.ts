/**
 * IRScope: Profile This File — runs the active file, measures what it compiled, and shows whose time it is.
 * IRScope: Profile This File Against… — the same, and each graph through other pipelines, or the file without its breaks.
 */

import * as path from "node:path";
import * as vscode from "vscode";
import type { Element } from "../host/runItems";
import { ProfileRequest } from "../host/requests";
import { activePythonFile, requireTrust, showProblem, withRunProgress, type Services } from "./context";
import { pickAgainst } from "./selectPipeline";
import { showTab } from "./showTab";

/** @param from a menu gives the file's URI, the tab *Memory* what is to be measured */
export async function profile(services: Services, from?: { memory?: boolean }): Promise<void> {
  const uri = activePythonFile()?.document.uri;
  if (uri !== undefined && (await requireTrust())) {
    await measure(services, uri, from?.memory === true ? { memory: true } : {});
  }
}

export async function profileAgainst(services: Services): Promise<void> {
  const uri = activePythonFile()?.document.uri;
  if (uri === undefined || !(await requireTrust())) {
    return;
  }
  const chosen = await pickAgainst(services, uri);
  if (chosen !== undefined) {
    await measure(services, uri, chosen);
  }
}

async function measure(
  services: Services,
  uri: vscode.Uri,
  more: { against?: string[]; withoutBreaks?: boolean; memory?: boolean },
): Promise<void> {
  const name = path.basename(uri.fsPath);
  const doing = vscode.l10n.t("profiling {0}", name);
  const { run, message } = await withRunProgress(services, doing, uri, (token) =>
    services.server.request(ProfileRequest, { uri: uri.toString(), ...more }, token),
  );
  if (run === null) {
    void showProblem(services, message);
    return;
  }
  // It took minutes: who types meanwhile goes on. VS Code also drops the new lenses of an editor that loses the focus.
  const title = vscode.l10n.t("{0}, measured time", name);
  await services.dock.show(more.memory === true ? "memory" : "measured", { run, title }, { preserveFocus: true });
}

/** From a lens the profile of its run, else as other tabs. */
export async function showTime(services: Services, from?: Element | { run: string; line: number }): Promise<void> {
  if (from !== undefined && !("kind" in from)) {
    await services.dock.show("measured", { run: from.run, title: vscode.l10n.t("measured time") });
    return;
  }
  await showTab(services, "measured", from);
}
