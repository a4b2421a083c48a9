/** The view in the panel area: pipeline, findings, compile time, memory and changes of the run that the editor is about. */

import * as vscode from "vscode";
import { SCHEME, wireUri, type Documents } from "./documents";
import { askServer, fill, type Host } from "./panelHost";
import type { Subject, Tab, ToPanel } from "../panels/messages";
import { REGISTRY, TABS } from "../panels/registry";
import type { SubjectOf } from "../panels/results";
import type { RunItem } from "../protocol";
import { SubjectOfRequest } from "./requests";
import { messageOf, ServerUnavailable, type Server } from "./server";
import { usesTorch } from "./torchFiles";

export const DOCK = "irscope.dock";

const REQUESTS = ["runs", "age", ...TABS.flatMap((tab) => REGISTRY[tab].requests)].map((name) => `irscope/${name}`);
/** The cursor rests for so long before it is asked what it is about. */
const REST_MS = 250;

/** What the view is about. */
type Content = Extract<ToPanel, { type: "subject" | "nothing" }>;

export class Dock implements vscode.WebviewViewProvider, vscode.Disposable {
  private view: vscode.WebviewView | undefined;
  /** The page is there and has said so. A page that is hidden is thrown away, and what is posted to none is lost. */
  private listens = false;
  private pending: Extract<ToPanel, { type: "tab" }> | undefined;
  /** Each new page gets it. */
  private content: Content | undefined;
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
    private readonly showGraph: (subject: Subject) => void,
  ) {
    this.subscriptions.push(
      this.drawn,
      vscode.window.registerWebviewViewProvider(DOCK, this),
      server.onDidChangeRuns(({ run, running }) => {
        this.tell({ type: "changed", run, running });
        this.follow();
      }),
      server.onDidChangeState(() => this.follow()),
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
  async show(tab: Tab, pin?: Subject, { preserveFocus = false } = {}): Promise<void> {
    this.pending = { type: "tab", tab, focus: !preserveFocus, ...(pin === undefined ? {} : { pin }) };
    await vscode.commands.executeCommand(`${DOCK}.focus`, { preserveFocus });
    this.tellPending();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.listens = false;
    // Where the view was moved, the one that it was may go, or say something, after the one that it is has come.
    const ifCurrent = (then: () => void) => (): void => {
      if (this.view === view) {
        then();
      }
    };
    view.onDidChangeVisibility(
      ifCurrent(() => {
        this.listens &&= view.visible;
      }),
    );
    view.onDidDispose(
      ifCurrent(() => {
        this.view = undefined;
        this.listens = false;
      }),
    );
    const host: Host = {
      ready: ifCurrent(() => this.tellNewPage()),
      requests: REQUESTS,
      ask: (request) => askServer(this.server, request),
      drawn: (what) => this.drawn.fire(what),
      open: (place, preserveFocus) => this.documents.open(place, preserveFocus),
      show: (_, subject) => this.showGraph(subject),
    };
    fill(view.webview, this.extensionUri, { name: "dock", title: "IRScope" }, host);
  }

  dispose(): void {
    clearTimeout(this.resting);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private tellNewPage(): void {
    this.listens = true;
    this.tellPending();
    if (this.content !== undefined) {
      this.tell(this.content);
    }
    if (vscode.window.activeTextEditor !== undefined) {
      this.tellCursor(vscode.window.activeTextEditor);
    }
    void this.findSubject();
  }

  // --- what the editor is about ---

  private follow(): void {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => void this.findSubject(), REST_MS);
  }

  private async findSubject(): Promise<void> {
    if (!this.listens) {
      return;
    }
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || !(editor.document.uri.scheme === SCHEME || editor.document.languageId === "python")) {
      // The focus is in a panel, or in a file that has nothing to do with it: what is shown stays.
      return this.saySubjectOr(EMPTY);
    }
    this.asked += 1;
    const mine = this.asked;
    const { document, selection } = editor;
    let subject: Subject | undefined;
    let problem: string | undefined;
    try {
      const params = { uri: wireUri(document.uri), line: selection.active.line };
      subject = subjectFrom(await this.server.request(SubjectOfRequest, params));
    } catch (error) {
      // Where the server is not there the status item says so, and it is asked again when it is.
      problem = error instanceof ServerUnavailable ? NO_SERVER : messageOf(error);
    }
    if (mine !== this.asked) {
      return;
    }
    if (subject !== undefined) {
      this.say({ type: "subject", subject });
    } else if (problem !== undefined) {
      this.say({ type: "nothing", message: problem });
    } else if (usesTorch(document)) {
      this.say({ type: "nothing", message: NO_RUN });
    } else {
      this.saySubjectOr(EMPTY);
    }
  }

  /** What is shown stays, if it is a run. */
  private saySubjectOr(message: string): void {
    this.say(this.content?.type === "subject" ? this.content : { type: "nothing", message });
  }

  private say(content: Content): void {
    const isNew = JSON.stringify(content) !== JSON.stringify(this.content);
    this.content = content;
    if (isNew) {
      this.tell(content);
    }
  }

  private tellCursor(editor: vscode.TextEditor): void {
    const uri = editor.document.uri;
    if (uri.scheme === "file" || uri.scheme === SCHEME) {
      this.tell({ type: "cursor", place: { uri: wireUri(uri), line: editor.selection.active.line } });
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

const EMPTY = vscode.l10n.t("Open a Python script that uses torch.compile and run it.");
const NO_RUN = vscode.l10n.t("No run includes this file yet. Analyze it to see what torch.compile does with it.");
const NO_SERVER = vscode.l10n.t("The language server is not running. The status item at the bottom right says why.");

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
  const name = script.slice(script.lastIndexOf("/") + 1);
  return lane === "fast" ? vscode.l10n.t("{0}, fast run", name) : vscode.l10n.t("{0}, deep run", name);
}
