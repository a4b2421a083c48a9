/** What the user chooses to run a library module with: a list of scripts, and the workspace's setting that keeps the choice. */

import * as path from "node:path";
import * as vscode from "vscode";
import { visible } from "../panels/visible";
import { withoutIcons } from "../host/plainText";
import { EntriesRequest } from "../host/requests";
import { SECTION } from "../host/settings";
import type { Services } from "./context";
import { choose } from "../host/lists";

const SETTING = "run.entryOf";

type Choice = vscode.QuickPickItem & { entry?: string };

/** Lets the user choose the entry of a file, and writes the setting. False: nothing was chosen. */
export async function chooseEntry(services: Services, uri: vscode.Uri): Promise<boolean> {
  if (vscode.workspace.getWorkspaceFolder(uri) === undefined) {
    void vscode.window.showInformationMessage(
      vscode.l10n.t("IRScope: open the folder of this file; the choice is kept in its settings."),
    );
    return false;
  }
  const { file, entry: current, candidates } = await services.server.request(EntriesRequest, { uri: uri.toString() });
  const choices: Choice[] = candidates.map(({ entry, detail }) => ({
    entry,
    label: withoutIcons(entry),
    description: withoutIcons(detail),
    ...(entry === current ? { detail: `$(check) ${vscode.l10n.t("runs this file now")}` } : {}),
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
  const entry = (chosen === undefined ? undefined : (chosen.entry ?? (await askEntry())))?.trim() ?? "";
  if (entry !== "") {
    await keepEntry(uri, file, entry);
  }
  return entry !== "";
}

async function keepEntry(uri: vscode.Uri, file: string, entry: string): Promise<void> {
  const settings = vscode.workspace.getConfiguration(SECTION, uri);
  const target =
    (vscode.workspace.workspaceFolders?.length ?? 0) > 1
      ? vscode.ConfigurationTarget.WorkspaceFolder
      : vscode.ConfigurationTarget.Workspace;
  const entries = settings.get<Record<string, string>>(SETTING, {});
  await settings.update(SETTING, { ...entries, [file]: entry }, target);
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
