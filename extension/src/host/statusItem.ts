/** One status item with the worker's state; a click shows what can be done about it. */

import * as vscode from "vscode";
import { SCHEME } from "./documents";
import { activeNotebook } from "./notebooks";
import { visible } from "../panels/visible";
import { asMarkdown, withoutIcons } from "./plainText";
import type { FileState, WorkerState } from "../protocol";
import type { Server } from "./server";
import { setContext, type TorchFiles } from "./torchFiles";

const ICONS: Record<WorkerState["state"], string> = {
  stopped: "circle-outline",
  starting: "loading~spin",
  ready: "circle-outline",
  running: "sync~spin",
  crashed: "flame",
  refused: "circle-slash",
};

/** How a run went, as an icon: in the status bar and in its menu. */
export const STANDING_ICONS: Record<NonNullable<FileState["standing"]>, string> = {
  failed: "error",
  causes: "warning",
  nothing: "circle-slash",
  clean: "check",
};

export class StatusItem implements vscode.Disposable {
  /** Public for tests: the editor gives no other way to read it. */
  readonly item = vscode.window.createStatusBarItem("irscope.status", vscode.StatusBarAlignment.Right, 90);
  private readonly subscriptions: vscode.Disposable[];
  private worker: WorkerState | undefined;
  private readonly fileStates = new Map<string, FileState>();
  /** The script that was in front last: what is said of it stays while a graph, a stage or a log is. */
  private script: vscode.Uri | undefined;

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
      server.onDidChangeFile((state) => {
        this.fileStates.set(vscode.Uri.parse(state.uri).toString(), state);
        this.update();
      }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        this.fileStates.delete(uri.toString());
        if (uri.toString() === this.script?.toString()) {
          // A library's file that the debugger opened, for example: the script is open still.
          const other = [...this.fileStates.keys()].pop();
          this.script = other === undefined ? undefined : vscode.Uri.parse(other);
        }
        this.update();
      }),
      server.onDidChangeState((state) => {
        setContext("irscope.serverState", state);
        if (state !== "ready") {
          this.fileStates.clear();
          this.worker = undefined;
          setContext("irscope.running", false);
        }
        this.update();
      }),
      files.onDidChange(() => this.update()),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.window.onDidChangeActiveNotebookEditor(() => this.update()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.update()),
    ];
    this.update();
  }

  /** The script that is being run, if one is. */
  runningUri(): string | undefined {
    return this.worker?.state === "running" ? (this.worker.uri ?? undefined) : undefined;
  }

  /** The file in the active editor; where it is not the user's own, the script that was in front last. */
  uri(): vscode.Uri | undefined {
    const uri = activeUri();
    return uri === undefined || !isUsers(uri) ? this.script : uri;
  }

  /** What is known about that file. */
  activeFile(): FileState | undefined {
    return this.fileStates.get(this.uri()?.toString() ?? "");
  }

  /** Whether nothing runs with the interpreter that is chosen. */
  needsInterpreter(): boolean {
    return this.workerHere().state === "refused" || this.server.status().state === "failed";
  }

  dispose(): void {
    this.subscriptions.forEach((each) => void each.dispose());
  }

  /** Icon, text and detail: of a run or trouble first, then of the active file. */
  private whatGoesOn(): [string, string, string] {
    const { state, text } = this.workerHere();
    const file = this.activeFile();
    const said = RUNNING_TEXTS[state];
    if (said !== undefined) {
      const phase = state === "running" ? (this.worker?.phase ?? "") : "";
      return [ICONS[state], phase === "" ? said : `IRScope: ${phase}`, text];
    }
    if (file?.state === "noEntry") {
      return ["question", vscode.l10n.t("IRScope: choose entry"), file.text];
    }
    if (file?.state === "stale") {
      return ["history", vscode.l10n.t("IRScope: edited"), text];
    }
    // Before what it changed: of a run that was stopped that is not the whole.
    if (file?.limit !== undefined && file.limit !== null && file.limit !== "steady-state") {
      return ["watch", vscode.l10n.t("IRScope: stopped at limit"), text];
    }
    if (file?.state === "current" && file.standing !== undefined && file.standing !== null) {
      const changed = file.changed ? ` · ${file.changed.text}` : "";
      return [STANDING_ICONS[file.standing], `IRScope: ${file.label}${changed}`, text];
    }
    return [ICONS[state], "IRScope", text];
  }

  /** What the worker does. What troubled the run of another file is not said of this one. */
  private workerHere(): Pick<WorkerState, "state" | "text"> {
    if (this.worker === undefined) {
      return { state: "stopped", text: vscode.l10n.t("No script was run yet.") };
    }
    const { state, uri } = this.worker;
    const active = this.uri()?.toString();
    const elsewhere = uri !== null && active !== undefined && vscode.Uri.parse(uri).toString() !== active;
    return elsewhere && isTrouble(state) ? { state: "ready", text: vscode.l10n.t("Ready") } : this.worker;
  }

  private aboutFile(detail: string): string[] {
    const text = this.activeFile()?.text ?? "";
    return text === "" || detail.endsWith(text) ? [] : [text];
  }

  /** What is said in full, with links to what can be done about it. */
  private tooltip(detail: string, python: string | undefined, bad: boolean): vscode.MarkdownString {
    const tooltip = new vscode.MarkdownString();
    tooltip.isTrusted = { enabledCommands: ["irscope.showChanges", "irscope.showLog", "irscope.restartServer"] };
    const said = [detail, ...this.aboutFile(detail)];
    // How the file is comes before that nothing else goes on.
    for (const line of this.workerHere().state === "ready" ? said.reverse() : said) {
      tooltip.appendMarkdown(`${asMarkdown(line)}\n\n`);
    }
    const changed = this.activeFile()?.changed;
    if (changed) {
      tooltip.appendMarkdown(`${vscode.l10n.t("Since the last run:")} [${asMarkdown(changed.text)}`);
      tooltip.appendMarkdown(`](command:irscope.showChanges "${vscode.l10n.t("Show what changed")}")\n\n`);
    }
    if (python !== undefined) {
      tooltip.appendMarkdown(asMarkdown(`Python: ${python}`));
    }
    if (bad) {
      tooltip.appendMarkdown(`\n\n[${vscode.l10n.t("Show Log")}](command:irscope.showLog)`);
    }
    if (this.server.status().state === "failed") {
      tooltip.appendMarkdown(` · [${vscode.l10n.t("Restart Server")}](command:irscope.restartServer)`);
    }
    return tooltip;
  }

  private update(): void {
    const front = activeUri();
    const isTorch = this.files.current || this.fileStates.has(front?.toString() ?? "");
    if (front !== undefined && isUsers(front) && isTorch) {
      this.script = front;
    }
    setContext("irscope.needsEntry", this.activeFile()?.state === "noEntry");
    const { state, problem, interpreter } = this.server.status();
    const [icon, text, detail] = !vscode.workspace.isTrusted
      ? ["shield", ...RESTRICTED]
      : state === "starting"
        ? ["sync~spin", RUNNING_TEXTS.starting, vscode.l10n.t("The language server is starting.")]
        : state === "failed"
          ? ["error", vscode.l10n.t("IRScope: not running"), problem]
          : this.whatGoesOn();
    this.item.text = `$(${icon}) ${withoutIcons(text)}`;
    this.item.accessibilityInformation = { label: visible(`${text}. ${detail}`), role: "button" };
    const bad = state === "failed" || isTrouble(this.workerHere().state);
    this.item.tooltip = this.tooltip(detail, this.worker?.python || interpreter?.path, bad);
    this.item.backgroundColor = bad ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    const isAside = front === undefined || !isUsers(front);
    if (this.files.current || this.worker?.state === "running" || (isAside && this.activeFile() !== undefined)) {
      this.item.show();
    } else {
      this.item.hide();
    }
  }
}

function activeUri(): vscode.Uri | undefined {
  return vscode.window.activeTextEditor?.document.uri ?? activeNotebook()?.uri;
}

/** Whether a document is neither ours, nor a text of the debugger or a log. */
function isUsers({ scheme }: vscode.Uri): boolean {
  return ![SCHEME, "output", "debug"].includes(scheme);
}

function isTrouble(state: WorkerState["state"]): boolean {
  return state === "crashed" || state === "refused";
}

/** Text and detail. */
const RESTRICTED = [
  vscode.l10n.t("IRScope: restricted"),
  vscode.l10n.t("Restricted Mode: no script is run until this folder is trusted."),
] as const;

const RUNNING_TEXTS = {
  starting: vscode.l10n.t("IRScope: starting"),
  running: vscode.l10n.t("IRScope: running"),
  crashed: vscode.l10n.t("IRScope: crashed"),
  refused: vscode.l10n.t("IRScope: cannot run"),
  ready: undefined,
  stopped: undefined,
} satisfies Record<WorkerState["state"], string | undefined>;
