/** IRScope: Choose Entry Script for This File — what runs a library module, kept in the workspace's settings. */

import * as path from "node:path";
import * as vscode from "vscode";
import { visible } from "../panels/visible";
import { withoutIcons, withoutLinks } from "../host/plainText";
import { EntriesRequest } from "../host/requests";
import { SECTION } from "../host/settings";
import { activePythonFile, requireTrust, type Services } from "./context";
import { runFile } from "./run";
import { choose } from "../host/lists";

const SETTING = "run.entryOf";

type Choice = vscode.QuickPickItem & { entry?: string };

/** Lets the user choose, writes the setting, and runs the choice. */
export async function chooseEntry(services: Services, given?: string): Promise<void> {
  const uri = given === undefined ? activePythonFile()?.document.uri : vscode.Uri.parse(given);
  if (uri === undefined || !(await requireTrust())) {
    return;
  }
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  if (folder === undefined) {
    void vscode.window.showInformationMessage(
      vscode.l10n.t("IRScope: open the folder of this file; the choice is kept in its settings."),
    );
    return;
  }
  const { file, entry, candidates } = await services.server.request(EntriesRequest, { uri: uri.toString() });
  const choices: Choice[] = candidates.map((each) => ({
    entry: each.entry,
    label: withoutIcons(each.entry),
    description: withoutIcons(each.detail),
    ...(each.entry === entry ? { detail: `$(check) ${vscode.l10n.t("runs this file now")}` } : {}),
  }));
  choices.push(
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { entry: file, label: `$(file) ${vscode.l10n.t("This file by itself")}`, description: withoutIcons(file) },
    {
      label: `$(edit) ${vscode.l10n.t("Another entry…")}`,
      description: vscode.l10n.t("a script, -m package.module or pytest tests/test_model.py::test"),
    },
  );
  const chosen = await choose(choices, {
    title: visible(vscode.l10n.t("Choose Entry Script for {0}", path.basename(uri.fsPath))),
    placeHolder:
      candidates.length > 0
        ? vscode.l10n.t("Which script runs this file?")
        : vscode.l10n.t("No file in this folder imports it. Which script runs this file?"),
    matchOnDescription: true,
  });
  const wanted = chosen === undefined ? undefined : (chosen.entry ?? (await askEntry()));
  if (wanted === undefined || wanted.trim() === "") {
    return;
  }
  const settings = vscode.workspace.getConfiguration(SECTION, uri);
  const target =
    (vscode.workspace.workspaceFolders?.length ?? 0) > 1
      ? vscode.ConfigurationTarget.WorkspaceFolder
      : vscode.ConfigurationTarget.Workspace;
  const known = settings.get<Record<string, string>>(SETTING, {});
  await settings.update(SETTING, { ...known, [file]: wanted.trim() }, target);
  if (settings.get<string>("run.onSave") === "off") {
    await runFile(services, uri, "fast"); // Else the server runs what has changed.
  }
}

/** Says that nothing is known to run a file, and offers to choose. */
export async function offerEntries(services: Services, uri: vscode.Uri, message: string): Promise<void> {
  const choose = vscode.l10n.t("Choose Entry Script");
  if ((await vscode.window.showInformationMessage(`IRScope: ${withoutLinks(message)}`, choose)) === choose) {
    await chooseEntry(services, uri.toString());
  }
}

async function askEntry(): Promise<string | undefined> {
  return vscode.window.showInputBox({
    title: vscode.l10n.t("Entry of this file"),
    prompt: vscode.l10n.t(
      "A script's path, -m package.module, or a pytest node id; paths start at the workspace folder.",
    ),
    placeHolder: vscode.l10n.t("scripts/train.py --small"),
  });
}
