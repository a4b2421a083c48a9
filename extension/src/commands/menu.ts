/** What a click on the status item offers: the few things that make sense in the state at hand. */

import * as vscode from "vscode";
import { visible } from "../panels/visible";
import { withoutIcons } from "../host/plainText";
import type { Services } from "./context";

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
    items.push({ label: "$(shield) Manage Workspace Trust", command: "workbench.trust.manage" });
  }
  if (file?.changed) {
    const description = withoutIcons(file.changed.text);
    items.push({ label: "$(diff) Show What Changed", description, command: "irscope.showChanges" });
  }
  if (running) {
    items.push({ label: "$(debug-stop) Cancel Run", command: "irscope.cancel" });
  } else if (state === "ready") {
    items.push({ label: "$(beaker) Analyze This File", command: "irscope.run" });
  }
  if (state === "ready" && file !== undefined && (file.state === "noEntry" || file.entry !== null)) {
    const choose = { label: "$(file-code) Choose Entry Script for This File", command: "irscope.chooseEntry" };
    const item = file.entry === null ? choose : { ...choose, description: withoutIcons(`now ${file.entry}`) };
    items.splice(file.state === "noEntry" ? 0 : items.length, 0, item);
  }
  items.push(
    { label: "$(list-tree) Show Runs", command: "irscope.runs.focus" },
    { label: "$(terminal) Show Script Output", command: "irscope.showOutput" },
    { label: "$(output) Show Log", command: "irscope.showLog" },
    { label: "$(refresh) Restart Server", command: "irscope.restartServer" },
    {
      label: "$(settings-gear) Choose an Interpreter",
      description:
        interpreter === undefined ? "" : withoutIcons(`${interpreter.path} (from the ${interpreter.source})`),
      command: "workbench.action.openSettings",
      arguments: ["irscope.python"],
    },
  );
  const chosen = await vscode.window.showQuickPick(items, {
    title: "IRScope",
    placeHolder: visible(problem) || "What to do?",
  });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command, ...(chosen.arguments ?? []));
  }
}
