/** What a click on the status item offers: what there is to see of the file first, then what is set. */

import * as vscode from "vscode";
import { visible } from "../panels/visible";
import { nameOf, type Interpreter } from "../host/interpreter";
import { withoutIcons } from "../host/plainText";
import { chooseInterpreter } from "../host/problems";
import { SECTION } from "../host/settings";
import { STANDING_ICONS } from "../host/statusItem";
import type { Services } from "./context";
import { SETTING as PIPELINE } from "./selectPipeline";
import { choose } from "../host/lists";

interface MenuItem extends vscode.QuickPickItem {
  command?: string;
  run?: () => Thenable<unknown>;
}

const SEPARATOR: MenuItem = { label: "", kind: vscode.QuickPickItemKind.Separator };
const CHOOSE_ENTRY = `$(file-code) ${vscode.l10n.t("Choose Entry Script for This File")}`;

export async function showMenu(services: Services): Promise<void> {
  const { interpreter, problem } = services.server.status();
  const file = services.status.activeFile();
  // How a run went is a sentence too long for one line: the item of its findings has it in short.
  const said = problem || (file?.standing ? "" : (file?.text ?? ""));
  const chosen = await choose([...urgent(services), ...views(services), SEPARATOR, ...theRest(services, interpreter)], {
    title: "IRScope",
    placeHolder: visible(said) || vscode.l10n.t("What to do?"),
  });
  await chosen?.run?.();
  if (chosen?.command !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}

/** What has to come first: an interpreter that can run scripts, trust, an entry for a module that nothing is known to run, the end of a run. */
function urgent({ server, status }: Services): MenuItem[] {
  const items = status.needsInterpreter() ? [interpreterItem(server.status().interpreter)] : [];
  const file = status.activeFile();
  if (!vscode.workspace.isTrusted) {
    items.push({ label: `$(shield) ${vscode.l10n.t("Manage Workspace Trust")}`, command: "workbench.trust.manage" });
  }
  if (file?.state === "noEntry") {
    items.push({ label: CHOOSE_ENTRY, command: "irscope.chooseEntry" });
  }
  if (status.runningUri() !== undefined) {
    items.push({ label: `$(debug-stop) ${vscode.l10n.t("Cancel Run")}`, command: "irscope.cancel" });
  }
  return items;
}

/** What people want to see of a file that was run, else to run it. */
function views({ server, status }: Services): MenuItem[] {
  if (server.status().state !== "ready") {
    return [];
  }
  const file = status.activeFile();
  const items: MenuItem[] = [];
  if (file?.changed) {
    const description = withoutIcons(file.changed.text);
    const label = `$(diff) ${vscode.l10n.t("Show What Changed")}`;
    items.push({ label, description, command: "irscope.showChanges" });
  }
  if (file?.standing !== undefined && file.standing !== null) {
    items.push(
      {
        label: `$(${STANDING_ICONS[file.standing]}) ${vscode.l10n.t("Show Findings")}`,
        description: withoutIcons(file.label),
        command: "irscope.showFindings",
      },
      { label: `$(code) ${vscode.l10n.t("Show Generated Kernel")}`, command: "irscope.showKernel" },
      { label: `$(type-hierarchy) ${vscode.l10n.t("Show FX Graph")}`, command: "irscope.showGraph" },
      { label: `$(layers) ${vscode.l10n.t("Show Pipeline")}`, command: "irscope.showPipeline" },
      { label: `$(dashboard) ${vscode.l10n.t("Profile This File")}`, command: "irscope.profile" },
      { label: `$(debug-alt) ${vscode.l10n.t("Debug Compilation")}`, command: "irscope.debug" },
      { label: `$(compare-changes) ${vscode.l10n.t("Compare Pipelines…")}`, command: "irscope.comparePipelines" },
    );
  }
  if (status.runningUri() === undefined) {
    items.push({ label: `$(beaker) ${vscode.l10n.t("Analyze This File")}`, command: "irscope.run" });
  }
  return items;
}

/** The settings, the logs and the server. */
function theRest({ server, status }: Services, interpreter: Interpreter | undefined): MenuItem[] {
  const items: MenuItem[] = [];
  const file = status.activeFile();
  const isReady = server.status().state === "ready";
  if (isReady && file !== undefined && file.entry !== null) {
    const description = withoutIcons(vscode.l10n.t("now {0}", file.entry));
    items.push({ label: CHOOSE_ENTRY, description, command: "irscope.chooseEntry" });
  }
  if (isReady && vscode.workspace.isTrusted) {
    const pipeline = vscode.workspace.getConfiguration(SECTION, vscode.window.activeTextEditor?.document.uri ?? null);
    const description = withoutIcons(vscode.l10n.t("now {0}", pipeline.get<string>(PIPELINE, "")));
    const label = `$(git-merge) ${vscode.l10n.t("Select Pipeline…")}`;
    items.push({ label, description, command: "irscope.selectPipeline" });
  }
  return [
    ...items,
    { label: `$(list-tree) ${vscode.l10n.t("Show Runs")}`, command: "irscope.runs.focus" },
    { label: `$(terminal) ${vscode.l10n.t("Show Script Output")}`, command: "irscope.showOutput" },
    { label: `$(output) ${vscode.l10n.t("Show Log")}`, command: "irscope.showLog" },
    { label: `$(refresh) ${vscode.l10n.t("Restart Server")}`, command: "irscope.restartServer" },
    ...(status.needsInterpreter() ? [] : [interpreterItem(interpreter)]),
  ];
}

function interpreterItem(interpreter: Interpreter | undefined): MenuItem {
  return {
    label: `$(settings-gear) ${vscode.l10n.t("Choose an Interpreter")}`,
    description: interpreter === undefined ? "" : withoutIcons(nameOf(interpreter)),
    run: chooseInterpreter,
  };
}
