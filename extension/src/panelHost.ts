/** The webview panels: each shows one subject, asks the server through us, and opens places in editors beside it. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import { columnOf, SCHEME, showSource, type Documents } from "./documents";
import { Ahead, type Request } from "./panels/ahead";
import type { FromPanel, PanelName, Subject, ToPanel } from "./panels/messages";
import { visible } from "./panels/visible";
import type { Place } from "./protocol";
import { showWithLog } from "./problems";
import { messageOf, type Server } from "./server";

/** What is particular to a kind of panel. */
export interface PanelKind {
  name: PanelName;
  /** Icon in extension/media, as `NAME-light.svg` and `NAME-dark.svg`. */
  icon: string;
  /** Where it opens. */
  column: vscode.ViewColumn;
  /** Sources that its content security policy allows beside its own script and styles, for example `worker-src blob:`. */
  policy?: string[];
  /** What the server may be asked for from inside the panel, where nobody is to be trusted. */
  requests: string[];
}

interface Shown {
  panel: vscode.WebviewPanel;
  subject: Subject;
  ahead: Ahead;
}

/** All panels of one kind; the same subject is shown once. */
export class Panels implements vscode.WebviewPanelSerializer<{ subject?: Subject }>, vscode.Disposable {
  private readonly shown = new Map<string, Shown>();
  private readonly subscriptions: vscode.Disposable[] = [];
  private readonly drawn = new vscode.EventEmitter<{ subject: Subject; what: string }>();
  readonly onDidDraw = this.drawn.event;

  constructor(
    private readonly kind: PanelKind,
    private readonly extensionUri: vscode.Uri,
    private readonly server: Server,
    private readonly documents: Documents,
    private readonly others: (panel: PanelName) => Panels | undefined,
  ) {
    this.subscriptions.push(
      this.drawn,
      vscode.window.registerWebviewPanelSerializer(this.viewType, this),
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

  show(subject: Subject): void {
    const known = this.shown.get(keyOf(subject));
    if (known !== undefined) {
      known.panel.reveal();
      return;
    }
    this.adopt(
      vscode.window.createWebviewPanel(this.viewType, subject.title, this.kind.column, { enableScripts: true }),
      subject,
    );
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { subject?: Subject } | undefined): Promise<void> {
    if (state?.subject === undefined) {
      panel.dispose();
      return;
    }
    this.adopt(panel, state.subject, state);
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    for (const { panel } of this.shown.values()) {
      panel.dispose();
    }
  }

  private get viewType(): string {
    return `irscope.${this.kind.name}`;
  }

  private adopt(panel: vscode.WebviewPanel, subject: Subject, state?: object): void {
    const ahead = new Ahead(this.kind.name, subject, state, (request) => ask(this.server, request));
    const folder = vscode.Uri.joinPath(this.extensionUri, "extension", "dist");
    const media = vscode.Uri.joinPath(this.extensionUri, "extension", "media");
    panel.webview.options = { enableScripts: true, localResourceRoots: [folder] };
    panel.iconPath = {
      light: vscode.Uri.joinPath(media, `${this.kind.icon}-light.svg`),
      dark: vscode.Uri.joinPath(media, `${this.kind.icon}-dark.svg`),
    };
    const shown = { panel, subject, ahead };
    this.shown.set(keyOf(subject), shown);
    panel.onDidDispose(() => this.shown.delete(keyOf(subject)));
    panel.webview.onDidReceiveMessage((message: FromPanel) => void this.receive(shown, message));
    panel.webview.html = html(panel.webview, folder, this.kind, subject.title);
  }

  private async receive(shown: Shown, message: FromPanel): Promise<void> {
    const { panel, subject } = shown;
    switch (message.type) {
      case "ready":
        return send(panel, { type: "subject", subject });
      case "request":
        return answer((request) => shown.ahead.answer(request), this.kind.requests, panel.webview, message);
      case "open":
        return attempt(() => this.open(panel, message.place));
      case "show":
        this.others(message.panel)?.show(message.subject);
        return;
      case "compare": {
        const [left, right] = [vscode.Uri.parse(message.left, true), vscode.Uri.parse(message.right, true)];
        return attempt(() => vscode.commands.executeCommand("vscode.diff", left, right, message.title));
      }
      case "save":
        return attempt(() => save(message.name, message.text));
      case "copy":
        return attempt(() => vscode.env.clipboard.writeText(message.text));
      case "run":
        return attempt(() => vscode.commands.executeCommand("irscope.run"));
      case "title":
        panel.title = visible(message.title);
        return;
      case "drawn":
        this.drawn.fire({ subject, what: message.what });
        return;
      case "problem":
        void showWithLog("warning", message.message);
    }
  }

  private async open(panel: vscode.WebviewPanel, { uri, line }: Place): Promise<void> {
    const target = vscode.Uri.parse(uri, true);
    const options = { line, column: columnBeside(panel, target) };
    await (target.scheme === SCHEME ? this.documents.show(uri, options) : showSource(uri, options));
  }

  private tellAll(message: ToPanel): void {
    for (const { panel } of this.shown.values()) {
      send(panel, message);
    }
  }
}

/** Asks for a webview, which may ask only for what is listed. */
export async function answer(
  ask: (request: Request) => Promise<unknown>,
  allowed: string[],
  webview: vscode.Webview,
  { id, method, params }: Extract<FromPanel, { type: "request" }>,
): Promise<void> {
  const tell = (message: ToPanel): void => void webview.postMessage(message);
  try {
    if (!allowed.includes(method)) {
      throw new Error(`The panel may not ask for ${method}.`);
    }
    const result = await ask({ method, params });
    tell({ type: "answer", id, result });
  } catch (error) {
    tell({ type: "failed", id, message: messageOf(error) });
  }
}

export function ask(server: Server, { method, params }: Request): Promise<unknown> {
  return server.request(new RequestType<object, unknown, void>(method), params);
}

/** What goes wrong is told to the user. */
export async function attempt(what: () => Thenable<unknown>): Promise<void> {
  try {
    await what();
  } catch (error) {
    void showWithLog("warning", messageOf(error));
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

export async function save(name: string, text: string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const uri = await vscode.window.showSaveDialog(
    folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, name) },
  );
  if (uri !== undefined) {
    await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  }
}

/** A page with nothing in it: a panel builds what it shows in its script, so that it is the same outside of VS Code. */
export function html(
  webview: vscode.Webview,
  folder: vscode.Uri,
  kind: { name: string; policy?: string[] },
  title: string,
): string {
  const nonce = randomBytes(18).toString("base64");
  const resource = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(folder, name)).toString();
  const policy = [
    "default-src 'none'",
    `style-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}' 'wasm-unsafe-eval'`,
    `font-src ${webview.cspSource}`,
    ...(kind.policy ?? []),
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1.0">
  <link rel="stylesheet" href="${resource(`${kind.name}.css`)}">
  <title>${title.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`)}</title>
</head>
<body>
  <script nonce="${nonce}" src="${resource(`${kind.name}.js`)}"></script>
</body>
</html>`;
}
