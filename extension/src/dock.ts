/** The view in the panel area: pipeline, findings, compile time, memory and changes of the run that the editor is about. */

import * as vscode from "vscode";
import { columnOf, SCHEME, showSource, wireUri, type Documents } from "./documents";
import { answer, ask, attempt, html, save } from "./panelHost";
import type { FromPanel, PanelName, Subject, Tab, ToPanel } from "./panels/messages";
import type { SubjectOf } from "./panels/results";
import type { Place, RunItem } from "./protocol";
import { SubjectOfRequest } from "./requests";
import { showWithLog } from "./problems";
import type { Server } from "./server";
import { usesTorch } from "./torchFiles";

export const DOCK = "irscope.dock";

const REQUESTS = ["runs", "pipeline", "step", "findings", "phases", "memory", "changes"].map(
  (name) => `irscope/${name}`,
);
/** The cursor rests for so long before it is asked what it is about. */
const REST_MS = 250;

export class Dock implements vscode.WebviewViewProvider, vscode.Disposable {
  private view: vscode.WebviewView | undefined;
  private listens = false;
  private pending: Extract<ToPanel, { type: "tab" }> | undefined;
  private subject: Subject | undefined;
  private told = "";
  private resting: NodeJS.Timeout | undefined;
  private asked = 0;
  private readonly subscriptions: vscode.Disposable[] = [];
  private readonly drawn = new vscode.EventEmitter<string>();
  /** Something is on the screen, by what it is: for tests. */
  readonly onDidDraw = this.drawn.event;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly server: Server,
    private readonly documents: Documents,
    private readonly showPanel: (panel: PanelName, subject: Subject) => void,
  ) {
    this.subscriptions.push(
      this.drawn,
      vscode.window.registerWebviewViewProvider(DOCK, this),
      server.onDidChangeRuns(({ run, running }) => {
        this.tell({ type: "changed", run, running });
        this.follow();
      }),
      server.onDidChangeState((state) => state === "ready" && this.follow()),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        if (editor !== undefined) {
          this.tellCursor(editor);
        }
        this.follow();
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) {
          this.tellCursor(textEditor);
          this.follow();
        }
      }),
    );
  }

  /** Shows the view with one of its tabs; `pin` is what it shows from then on, in place of what the editor is about. */
  async show(tab: Tab, pin?: Subject): Promise<void> {
    this.pending = { type: "tab", tab, focus: true, ...(pin === undefined ? {} : { pin }) };
    await vscode.commands.executeCommand(`${DOCK}.focus`);
    this.tellPending();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const folder = vscode.Uri.joinPath(this.extensionUri, "extension", "dist");
    this.view = view;
    this.listens = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [folder] };
    view.webview.onDidReceiveMessage((message: FromPanel) => void this.receive(view.webview, message));
    view.onDidChangeVisibility(() => view.visible && this.follow());
    view.onDidDispose(() => {
      this.view = undefined;
      this.listens = false;
    });
    view.webview.html = html(view.webview, folder, { name: "dock" }, "IRScope");
  }

  dispose(): void {
    clearTimeout(this.resting);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async receive(webview: vscode.Webview, message: FromPanel): Promise<void> {
    switch (message.type) {
      case "ready":
        this.listens = true;
        this.told = "";
        this.tellPending();
        if (vscode.window.activeTextEditor !== undefined) {
          this.tellCursor(vscode.window.activeTextEditor);
        }
        return this.findSubject();
      case "request":
        return answer((request) => ask(this.server, request), REQUESTS, webview, message);
      case "open":
        return attempt(() => this.open(message.place, message.preserveFocus ?? false));
      case "show":
        this.showPanel(message.panel, message.subject);
        return;
      case "run":
        return attempt(() => vscode.commands.executeCommand("irscope.run"));
      case "compare": {
        const [left, right] = [vscode.Uri.parse(message.left, true), vscode.Uri.parse(message.right, true)];
        return attempt(() => vscode.commands.executeCommand("vscode.diff", left, right, message.title));
      }
      case "save":
        return attempt(() => save(message.name, message.text));
      case "copy":
        return attempt(() => vscode.env.clipboard.writeText(message.text));
      case "drawn":
        this.drawn.fire(message.what);
        return;
      case "title":
        return;
      case "problem":
        void showWithLog("warning", message.message);
    }
  }

  private async open({ uri, line }: Place, preserveFocus: boolean): Promise<void> {
    const target = vscode.Uri.parse(uri, true);
    const options = { line, column: columnFor(target), preserveFocus };
    await (target.scheme === SCHEME ? this.documents.show(uri, options) : showSource(uri, options));
  }

  // --- what the editor is about ---

  private follow(): void {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => void this.findSubject(), REST_MS);
  }

  private async findSubject(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (this.view?.visible !== true || !this.listens) {
      return;
    }
    if (document === undefined || !(document.uri.scheme === SCHEME || document.languageId === "python")) {
      // The focus is in a panel, or in a file that has nothing to do with it: what is shown stays.
      return this.subject === undefined ? this.tellNothing(EMPTY) : undefined;
    }
    this.asked += 1;
    const mine = this.asked;
    const line = vscode.window.activeTextEditor?.selection.active.line ?? 0;
    try {
      const found = await this.server.request(SubjectOfRequest, { uri: wireUri(document.uri), line });
      if (mine !== this.asked) {
        return;
      }
      const subject = subjectFrom(found);
      if (subject !== undefined) {
        this.subject = subject;
        this.tellOnce({ type: "subject", subject });
      } else if (usesTorch(document)) {
        this.subject = undefined;
        this.tellNothing("No run has to do with this file yet. Run it to see what torch.compile made of it.");
      } else if (this.subject === undefined) {
        this.tellNothing(EMPTY);
      }
    } catch {
      // The server is not there: the status item says so, and it is asked again when it is.
      this.tellNothing("The language server is not running. The status item at the bottom right says why.");
    }
  }

  private tellNothing(message: string): void {
    this.tellOnce({ type: "nothing", message });
  }

  private tellCursor(editor: vscode.TextEditor): void {
    const uri = editor.document.uri;
    if (uri.scheme === "file" || uri.scheme === SCHEME) {
      this.tell({ type: "cursor", place: { uri: wireUri(uri), line: editor.selection.active.line } });
    }
  }

  private tellOnce(message: ToPanel): void {
    const text = JSON.stringify(message);
    if (text !== this.told) {
      this.told = text;
      this.tell(message);
    }
  }

  private tellPending(): void {
    if (this.listens && this.pending !== undefined) {
      this.tell(this.pending);
      this.pending = undefined;
    }
  }

  private tell(message: ToPanel): void {
    if (this.listens) {
      void this.view?.webview.postMessage(message);
    }
  }
}

const EMPTY = "Open a Python script that uses torch.compile and run it.";

function subjectFrom({ run, deep, compile, stage }: SubjectOf): Subject | undefined {
  if (run === null) {
    return undefined;
  }
  return {
    run: run.run,
    title: titleOf(run),
    ...(deep === null || deep.run === run.run ? {} : { deep: deep.run }),
    ...(compile === null ? {} : { compile }),
    ...(stage === null ? {} : { stage }),
  };
}

export function titleOf({ script, lane }: RunItem): string {
  return `${script.slice(script.lastIndexOf("/") + 1)}, ${lane} run`;
}

/** Where a document opens: where it is open, else stages beside the source and sources beside the stages. */
function columnFor(target: vscode.Uri): vscode.ViewColumn {
  const open = columnOf(target);
  if (open !== undefined) {
    return open;
  }
  const sameKind = vscode.window.visibleTextEditors.find(
    ({ document }) =>
      (document.uri.scheme === SCHEME) === (target.scheme === SCHEME) && document.uri.scheme !== "output",
  );
  return (
    sameKind?.viewColumn ??
    (vscode.window.activeTextEditor === undefined ? vscode.ViewColumn.One : vscode.ViewColumn.Beside)
  );
}
