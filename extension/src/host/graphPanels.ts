/** The panels that show a graph: each has one subject, and opens places in editors beside it. */

import * as vscode from "vscode";
import { columnOf, SCHEME, showSource, type Documents } from "./documents";
import { askServer, fill, tabIcon, type Host } from "./panelHost";
import { Ahead } from "../panels/ahead";
import type { Lines, Subject, ToPanel } from "../panels/messages";
import { visible } from "../panels/visible";
import type { Place } from "../protocol";
import type { Server } from "./server";

const VIEW_TYPE = "irscope.graph";
const REQUESTS = ["irscope/graph", "irscope/graphKernels", "irscope/age"];

/** The same subject is shown once. */
export class GraphPanels implements vscode.WebviewPanelSerializer<{ subject?: Subject }>, vscode.Disposable {
  private readonly shown = new Map<string, vscode.WebviewPanel>();
  private readonly subscriptions: vscode.Disposable[] = [];
  private readonly drawn = new vscode.EventEmitter<{ subject: Subject; what: string }>();
  readonly onDidDraw = this.drawn.event;
  private readonly landed = new vscode.EventEmitter<Lines>();
  /** A graph was told where to land; for the tests of this extension. */
  readonly onDidLand = this.landed.event;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly server: Server,
    private readonly documents: Documents,
  ) {
    this.subscriptions.push(
      this.drawn,
      this.landed,
      vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, this),
      server.onDidChangeRuns(({ run, running }) => this.tellAll({ type: "changed", run, running })),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) => {
        const uri = textEditor.document.uri;
        if (uri.scheme === "file" || uri.scheme === SCHEME) {
          const place = { uri: uri.toString(true), line: selections[0]?.active.line ?? 0 };
          this.tellAll({ type: "cursor", place });
        }
      }),
    );
  }

  /** @param at lines of the graph's stage that are shown first */
  show(subject: Subject, at?: Lines): void {
    const landing = at === undefined || at.lines.length === 0 ? [] : [at];
    const known = this.shown.get(keyOf(subject));
    if (known !== undefined) {
      known.reveal();
      this.land(known, landing);
      return;
    }
    const column = vscode.ViewColumn.Beside;
    this.adopt(vscode.window.createWebviewPanel(VIEW_TYPE, visible(subject.title), column), subject, { landing });
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { subject?: Subject } | undefined): Promise<void> {
    if (state?.subject === undefined) {
      panel.dispose();
      return;
    }
    this.adopt(panel, state.subject, { state });
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    for (const panel of this.shown.values()) {
      panel.dispose();
    }
  }

  private adopt(
    panel: vscode.WebviewPanel,
    subject: Subject,
    { state, landing = [] }: { state?: object; landing?: Lines[] },
  ): void {
    const ahead = new Ahead("graph", subject, state, (request) => askServer(this.server, request));
    panel.iconPath = tabIcon(this.extensionUri, "graph");
    this.shown.set(keyOf(subject), panel);
    panel.onDidDispose(() => this.shown.delete(keyOf(subject)));
    const host: Host = {
      ready: () => {
        send(panel, { type: "subject", subject });
        this.land(panel, landing.splice(0)); // Once: a page that is loaded again is where the user has left it.
      },
      requests: REQUESTS,
      ask: (request) => ahead.answer(request),
      drawn: (what) => this.drawn.fire({ subject, what }),
      open: (place) => this.open(panel, place),
      title: (title) => (panel.title = title),
    };
    const policy = ["worker-src blob:"]; // eslint-disable-line no-restricted-syntax -- no text
    fill(panel.webview, this.extensionUri, { name: "graph", title: subject.title, policy }, host);
  }

  private land(panel: vscode.WebviewPanel, landing: Lines[]): void {
    for (const at of landing) {
      send(panel, { type: "land", at });
      this.landed.fire(at);
    }
  }

  private async open(panel: vscode.WebviewPanel, { uri, line }: Place): Promise<void> {
    const target = vscode.Uri.parse(uri, true);
    const options = { line, column: columnBeside(panel, target) };
    await (target.scheme === SCHEME ? this.documents.show(uri, options) : showSource(uri, options));
  }

  private tellAll(message: ToPanel): void {
    for (const panel of this.shown.values()) {
      send(panel, message);
    }
  }
}

function send(panel: vscode.WebviewPanel, message: ToPanel): void {
  void panel.webview.postMessage(message);
}

function keyOf({ run, compile, stage }: Subject): string {
  return JSON.stringify([run, compile, stage]);
}

/** Where a file opens without covering the panel: its own column when it is open elsewhere, else beside. */
function columnBeside(panel: vscode.WebviewPanel, uri: vscode.Uri): vscode.ViewColumn {
  const open = columnOf(uri);
  if (open !== undefined && open !== panel.viewColumn) {
    return open;
  }
  const other = vscode.window.tabGroups.all.find((group) => group.viewColumn !== panel.viewColumn);
  return other?.viewColumn ?? vscode.ViewColumn.Beside;
}
