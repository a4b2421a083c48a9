/** One status item with the worker's state; a click shows what can be done about it. */

import * as vscode from "vscode";
import type { WorkerState } from "./protocol";
import type { Server } from "./server";
import { setContext, type TorchFiles } from "./torchFiles";

const ICONS: Record<WorkerState["state"], string> = {
  stopped: "circle-outline",
  ready: "check",
  running: "sync~spin",
  crashed: "flame",
  refused: "circle-slash",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("irscope.status", vscode.StatusBarAlignment.Right, 90);
  private readonly subscriptions: vscode.Disposable[];
  private worker: WorkerState | undefined;

  constructor(
    private readonly server: Server,
    private readonly files: TorchFiles,
  ) {
    this.item.name = "IRScope";
    this.item.command = "irscope.showMenu";
    this.subscriptions = [
      this.item,
      server.onDidChangeWorker((worker) => {
        this.worker = worker;
        setContext("irscope.running", worker.state === "running");
        this.update();
      }),
      server.onDidChangeState((state) => {
        setContext("irscope.serverState", state);
        if (state !== "ready") {
          this.worker = undefined;
          setContext("irscope.running", false);
        }
        this.update();
      }),
      files.onDidChange(() => this.update()),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.update()),
    ];
    this.update();
  }

  /** The script that is being run, if one is. */
  runningUri(): string | undefined {
    return this.worker?.state === "running" ? (this.worker.uri ?? undefined) : undefined;
  }

  dispose(): void {
    this.subscriptions.forEach((each) => void each.dispose());
  }

  private update(): void {
    const { state, problem, interpreter } = this.server.status();
    const [icon, text, detail] = !vscode.workspace.isTrusted
      ? ["shield", "IRScope: restricted", "Restricted Mode: no script is run until this folder is trusted."]
      : state === "starting"
        ? ["sync~spin", "IRScope: starting", "The language server is starting."]
        : state === "failed"
          ? ["error", "IRScope: not running", problem]
          : [
              ICONS[this.worker?.state ?? "stopped"],
              textOf(this.worker),
              this.worker?.text ?? "No script was run yet.",
            ];
    this.item.text = `$(${icon}) ${text}`;
    this.item.accessibilityInformation = { label: `${text}. ${detail}`, role: "button" };
    const python = this.worker?.python || interpreter?.path;
    this.item.tooltip = [detail, ...(python === undefined ? [] : [`Python: ${python}`])].join("\n");
    const bad = state === "failed" || this.worker?.state === "crashed" || this.worker?.state === "refused";
    this.item.backgroundColor = bad ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    if (this.files.current || this.worker?.state === "running") {
      this.item.show();
    } else {
      this.item.hide();
    }
  }
}

function textOf(worker: WorkerState | undefined): string {
  switch (worker?.state) {
    case "running":
      return "IRScope: running";
    case "crashed":
      return "IRScope: crashed";
    case "refused":
      return "IRScope: cannot run";
    default:
      return "IRScope";
  }
}
