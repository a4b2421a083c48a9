/** IRScope: Show FX Graph — webview panels, one for each graph stage. The picture itself is made in graph/. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { columnOf, showSource, type Documents } from "./documents";
import type { FromPanel, StageRef, ToPanel } from "./graph/messages";
import type { Graph } from "./protocol";
import { showWithLog } from "./problems";
import { GraphRequest } from "./requests";
import { messageOf, type Server } from "./server";

const VIEW_TYPE = "irscope.graph";

export class GraphPanels implements vscode.WebviewPanelSerializer<{ stage?: StageRef }>, vscode.Disposable {
  private readonly panels = new Map<string, GraphPanel>();
  private readonly registration: vscode.Disposable;
  private readonly drawn = new vscode.EventEmitter<{ stage: StageRef; nodes: number }>();
  readonly onDidDraw = this.drawn.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly server: Server,
    private readonly documents: Documents,
  ) {
    this.registration = vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, this);
  }

  /** Shows the graph of a stage beside the source, in the panel that has it already where there is one. */
  async show(stage: { run: string; stage: string; title: string }): Promise<void> {
    const ref: StageRef = { run: stage.run, stage: stage.stage, title: stage.title };
    const known = this.panels.get(keyOf(ref));
    if (known !== undefined) {
      known.reveal();
      return;
    }
    const panel = vscode.window.createWebviewPanel(VIEW_TYPE, ref.title, vscode.ViewColumn.Beside, {
      enableScripts: true,
    });
    this.adopt(panel, ref);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { stage?: StageRef } | undefined): Promise<void> {
    if (state?.stage === undefined) {
      panel.dispose();
      return;
    }
    this.adopt(panel, state.stage);
  }

  dispose(): void {
    this.registration.dispose();
    this.drawn.dispose();
    for (const panel of this.panels.values()) {
      panel.dispose();
    }
  }

  private adopt(panel: vscode.WebviewPanel, stage: StageRef): void {
    const key = keyOf(stage);
    this.panels.set(
      key,
      new GraphPanel(panel, stage, this.context.extensionUri, this.server, this.documents, (nodes) =>
        this.drawn.fire({ stage, nodes }),
      ),
    );
    panel.onDidDispose(() => this.panels.delete(key));
  }
}

class GraphPanel {
  private graph: Graph | undefined;

  constructor(
    private readonly panel: vscode.WebviewPanel,
    private readonly stage: StageRef,
    extensionUri: vscode.Uri,
    private readonly server: Server,
    private readonly documents: Documents,
    private readonly onDrawn: (nodes: number) => void,
  ) {
    const media = vscode.Uri.joinPath(extensionUri, "extension", "dist");
    panel.webview.options = { enableScripts: true, localResourceRoots: [media] };
    panel.iconPath = {
      light: vscode.Uri.joinPath(extensionUri, "extension", "media", "graph-light.svg"),
      dark: vscode.Uri.joinPath(extensionUri, "extension", "media", "graph-dark.svg"),
    };
    panel.webview.onDidReceiveMessage((message: FromPanel) => void this.receive(message));
    panel.webview.html = html(panel.webview, media, stage.title);
  }

  reveal(): void {
    this.panel.reveal();
  }

  dispose(): void {
    this.panel.dispose();
  }

  private async receive(message: FromPanel): Promise<void> {
    switch (message.type) {
      case "ready":
        this.send({ type: "stage", stage: this.stage });
        return this.load();
      case "retry":
        return this.load();
      case "openSource":
        return this.openSource(message.node);
      case "openStage":
        return this.openStage(message.node);
      case "drawn":
        return this.onDrawn(message.nodes);
      case "problem":
        void showWithLog("warning", message.message);
    }
  }

  private async load(): Promise<void> {
    try {
      this.graph ??= await this.server.request(GraphRequest, { run: this.stage.run, stage: this.stage.stage });
      this.panel.title = this.graph.title;
      this.send({ type: "graph", graph: this.graph });
    } catch (error) {
      this.send({ type: "failed", message: messageOf(error) });
    }
  }

  private async openSource(id: string): Promise<void> {
    const origin = this.graph?.nodes.find((node) => node.id === id)?.origin;
    if (origin === undefined || origin === null) {
      vscode.window.setStatusBarMessage("IRScope: PyTorch names no source line for this node.", 4000);
      return;
    }
    try {
      const uri = vscode.Uri.parse(origin.uri, true);
      await showSource(origin.uri, { line: origin.line, column: this.columnFor(uri) });
    } catch (error) {
      void showWithLog("warning", messageOf(error));
    }
  }

  private async openStage(id: string): Promise<void> {
    const node = this.graph?.nodes.find((each) => each.id === id);
    if (node === undefined) {
      return;
    }
    try {
      const column = this.columnFor(vscode.Uri.parse(node.stageUri, true));
      await this.documents.show(node.stageUri, { line: node.stageLine, column });
    } catch (error) {
      void showWithLog("warning", messageOf(error));
    }
  }

  /** Where a file opens without covering the graph: its own column when it is open elsewhere, else beside. */
  private columnFor(uri: vscode.Uri): vscode.ViewColumn {
    const open = columnOf(uri);
    if (open !== undefined && open !== this.panel.viewColumn) {
      return open;
    }
    const other = vscode.window.tabGroups.all.find((group) => group.viewColumn !== this.panel.viewColumn);
    return other?.viewColumn ?? vscode.ViewColumn.Beside;
  }

  private send(message: ToPanel): void {
    void this.panel.webview.postMessage(message);
  }
}

function keyOf({ run, stage }: StageRef): string {
  return `${run}/${stage}`;
}

function html(webview: vscode.Webview, media: vscode.Uri, title: string): string {
  const nonce = randomBytes(18).toString("base64");
  const resource = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(media, name)).toString();
  // Nothing by default. WebAssembly is Graphviz, and it runs in a worker made from a blob so that the panel stays alive.
  const policy = [
    "default-src 'none'",
    `style-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}' 'wasm-unsafe-eval'`,
    "worker-src blob:",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1.0">
  <link rel="stylesheet" href="${resource("graph.css")}">
  <title>${escapeHtml(title)}</title>
</head>
<body>
  <header role="toolbar" aria-label="Graph">
    <input type="search" id="search" placeholder="Search nodes" aria-label="Search nodes; Enter for the next match, Shift+Enter for the one before" spellcheck="false">
    <span id="matches" role="status" aria-live="polite"></span>
    <button type="button" id="previous" title="Previous match (Shift+Enter)" aria-label="Previous match">↑</button>
    <button type="button" id="next" title="Next match (Enter)" aria-label="Next match">↓</button>
    <span class="spacer"></span>
    <span id="summary"></span>
    <button type="button" id="zoom-out" title="Zoom out (-)" aria-label="Zoom out">−</button>
    <button type="button" id="zoom-in" title="Zoom in (+)" aria-label="Zoom in">+</button>
    <button type="button" id="fit" title="Show the whole graph (0)">Fit</button>
  </header>
  <main id="canvas" tabindex="0" aria-label="Graph. Arrow keys move between nodes, Enter goes to the source line, Alt+Enter to the line in the stage."></main>
  <section id="notice" role="status" aria-live="polite">
    <p id="notice-text">Loading…</p>
    <p id="notice-detail"></p>
    <div><button type="button" id="notice-action" hidden></button></div>
  </section>
  <footer id="details" aria-live="polite" hidden>
    <div id="details-text"><strong id="details-name"></strong> <span id="details-op"></span> <code id="details-detail"></code></div>
    <button type="button" id="go-source" title="Enter">Go to Source Line</button>
    <button type="button" id="go-stage" title="Alt+Enter">Show in Stage</button>
  </footer>
  <script nonce="${nonce}" src="${resource("graph.js")}"></script>
</body>
</html>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}
