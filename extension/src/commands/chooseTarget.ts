/** IRScope: Choose Target… — the devices whose kernels deep runs predict, kept in the settings. */

import * as vscode from "vscode";
import { withoutIcons } from "../host/plainText";
import { SECTION } from "../host/settings";
import { requireTrust } from "./context";
import { TARGETS } from "../targets";
import { chooseMany } from "../host/lists";

export const SETTING = "target";

/** Shows the catalogue, and those of the setting that are not in it; none chosen: deep runs predict nothing. */
export async function chooseTarget(): Promise<void> {
  if (!(await requireTrust())) {
    return;
  }
  const settings = vscode.workspace.getConfiguration(SECTION, vscode.window.activeTextEditor?.document.uri ?? null);
  const now = namesIn(settings.get<string>(SETTING, ""));
  const own = now.filter((name) => TARGETS.every(([known]) => known !== name));
  const items = [...TARGETS, ...own.map((name) => [name, vscode.l10n.t("your own target")] as const)].map(
    ([name, title]) => ({
      label: withoutIcons(name),
      description: withoutIcons(title),
      picked: now.includes(name),
      name,
    }),
  );
  const chosen = await chooseMany(items, {
    matchOnDescription: true,
    title: vscode.l10n.t("Choose Target"),
    placeHolder: vscode.l10n.t("Which devices do deep runs predict kernels for? None: those of this machine"),
  });
  if (chosen === undefined) {
    return;
  }
  const { Global, Workspace } = vscode.ConfigurationTarget;
  const names = chosen.map(({ name }) => name).join(",");
  await settings.update(SETTING, names, vscode.workspace.workspaceFolders === undefined ? Global : Workspace);
}

function namesIn(setting: string): string[] {
  return setting
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
