/** What a click on the status item offers: the few things that make sense in the state at hand. */

import * as vscode from "vscode";
import { visible } from "../panels/visible";
import { nameOf } from "../host/interpreter";
import { withoutIcons } from "../host/plainText";
import { SECTION } from "../host/settings";
import type { Services } from "./context";
import { SETTING as PIPELINE } from "./selectPipeline";
import { choose } from "../host/lists";

interface MenuItem extends vscode.QuickPickItem {
  command: string;
  arguments?: unknown[];
}

export async function showMenu(services: Services): Promise<void> {
  const { state, interpreter, problem } = services.server.status();
  const running = services.status.runningUri() !== undefined;
  const file = services.status.activeFile();
  const items: MenuItem[] = [];
  if (!vscode.workspace.isTrusted) {
    items.push({ label: `$(shield) ${vscode.l10n.t("Manage Workspace Trust")}`, command: "workbench.trust.manage" });
  }
  if (file?.changed) {
    const description = withoutIcons(file.changed.text);
    const label = `$(diff) ${vscode.l10n.t("Show What Changed")}`;
    items.push({ label, description, command: "irscope.showChanges" });
  }
  if (running) {
    items.push({ label: `$(debug-stop) ${vscode.l10n.t("Cancel Run")}`, command: "irscope.cancel" });
  } else if (state === "ready") {
    items.push({ label: `$(beaker) ${vscode.l10n.t("Analyze This File")}`, command: "irscope.run" });
  }
  if (state === "ready" && file !== undefined && (file.state === "noEntry" || file.entry !== null)) {
    const label = `$(file-code) ${vscode.l10n.t("Choose Entry Script for This File")}`;
    const choose = { label, command: "irscope.chooseEntry" };
    const now = vscode.l10n.t("now {0}", file.entry ?? "");
    const item = file.entry === null ? choose : { ...choose, description: withoutIcons(now) };
    items.splice(file.state === "noEntry" ? 0 : items.length, 0, item);
  }
  if (state === "ready" && vscode.workspace.isTrusted) {
    const pipeline = vscode.workspace.getConfiguration(SECTION, vscode.window.activeTextEditor?.document.uri ?? null);
    const description = withoutIcons(vscode.l10n.t("now {0}", pipeline.get<string>(PIPELINE, "")));
    const label = `$(git-merge) ${vscode.l10n.t("Select Pipeline…")}`;
    items.push({ label, description, command: "irscope.selectPipeline" });
  }
  items.push(
    { label: `$(list-tree) ${vscode.l10n.t("Show Runs")}`, command: "irscope.runs.focus" },
    { label: `$(terminal) ${vscode.l10n.t("Show Script Output")}`, command: "irscope.showOutput" },
    { label: `$(output) ${vscode.l10n.t("Show Log")}`, command: "irscope.showLog" },
    { label: `$(refresh) ${vscode.l10n.t("Restart Server")}`, command: "irscope.restartServer" },
    {
      label: `$(settings-gear) ${vscode.l10n.t("Choose an Interpreter")}`,
      description: interpreter === undefined ? "" : withoutIcons(nameOf(interpreter)),
      command: "workbench.action.openSettings",
      arguments: ["irscope.python"],
    },
  );
  const chosen = await choose(items, {
    title: "IRScope",
    placeHolder: visible(problem) || vscode.l10n.t("What to do?"),
  });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command, ...(chosen.arguments ?? []));
  }
}
