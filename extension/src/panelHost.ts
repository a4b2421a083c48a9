/** What is behind every webview: the page of its panel, and what is done when the panel asks for something. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import type { Request } from "./panels/ahead";
import type { FromPanel, PanelName, Subject, ToPanel } from "./panels/messages";
import { visible } from "./panels/visible";
import { loadUntilThere, type View } from "./pageLoad";
import type { Place } from "./protocol";
import { showWithLog } from "./problems";
import { messageOf, type Server } from "./server";

/** A page: a script and a style sheet of this name in extension/dist. */
export interface Page {
  name: PanelName | "dock" | "values";
  title: string;
  /** Sources that its content security policy allows beside its own script and styles, for example `worker-src blob:`. */
  policy?: string[];
}

/** What each host does in its own way. Where one leaves something out, its panel never asks for that. */
export interface Host {
  /** The page listens. */
  ready(): void;
  /** What the panel may ask for: nobody in it is to be trusted. */
  requests: readonly string[];
  ask(request: Request): Promise<unknown>;
  /** Something is on the screen, by what it is. */
  drawn(what: string): void;
  open?(place: Place, preserveFocus: boolean): Promise<void>;
  show?(panel: PanelName, subject: Subject): void;
  title?(title: string): void;
}

/** Fills a view with a page, which the host answers from then on. */
export function fill(view: View, extensionUri: vscode.Uri, page: Page, host: Host): void {
  const { webview } = view;
  const folder = vscode.Uri.joinPath(extensionUri, "extension", "dist");
  webview.options = { enableScripts: true, localResourceRoots: [folder] };
  const isThere = loadUntilThere(
    view,
    () => (webview.html = html(webview, folder, page)),
    () => void showWithLog("warning", `The panel "${page.title}" did not load. Close it and open it again.`),
  );
  webview.onDidReceiveMessage((message: FromPanel) => {
    if (message.type === "ready") {
      isThere();
    }
    void receive(webview, message, host);
  });
}

export function askServer(server: Server, { method, params }: Request): Promise<unknown> {
  return server.request(new RequestType<object, unknown, void>(method), params);
}

/** The icon of a panel's tab. */
export function tabIcon(extensionUri: vscode.Uri, name: string): { light: vscode.Uri; dark: vscode.Uri } {
  const media = vscode.Uri.joinPath(extensionUri, "extension", "media");
  return {
    light: vscode.Uri.joinPath(media, `${name}-light.svg`),
    dark: vscode.Uri.joinPath(media, `${name}-dark.svg`),
  };
}

async function receive(webview: vscode.Webview, message: FromPanel, host: Host): Promise<void> {
  switch (message.type) {
    case "ready":
      return host.ready();
    case "request":
      return answer(webview, message, host);
    case "open":
      return attempt(async () => host.open?.(message.place, message.preserveFocus ?? false));
    case "show":
      return host.show?.(message.panel, message.subject);
    case "compare": {
      const [left, right] = [vscode.Uri.parse(message.left, true), vscode.Uri.parse(message.right, true)];
      return attempt(() => vscode.commands.executeCommand("vscode.diff", left, right, visible(message.title)));
    }
    case "save":
      return attempt(() => save(message.name, message.text));
    case "copy":
      return attempt(() => vscode.env.clipboard.writeText(message.text));
    case "run":
      return attempt(() => vscode.commands.executeCommand("irscope.run"));
    case "title":
      return host.title?.(visible(message.title));
    case "drawn":
      return host.drawn(message.what);
    case "problem":
      void showWithLog("warning", message.message);
  }
}

async function answer(
  webview: vscode.Webview,
  { id, method, params }: Extract<FromPanel, { type: "request" }>,
  host: Host,
): Promise<void> {
  const tell = (message: ToPanel): void => void webview.postMessage(message);
  try {
    if (!host.requests.includes(method)) {
      throw new Error(`The panel may not ask for ${method}.`);
    }
    tell({ type: "answer", id, result: await host.ask({ method, params }) });
  } catch (error) {
    tell({ type: "failed", id, message: messageOf(error) });
  }
}

/** What goes wrong is told to the user. */
async function attempt(what: () => Thenable<unknown>): Promise<void> {
  try {
    await what();
  } catch (error) {
    void showWithLog("warning", messageOf(error));
  }
}

async function save(name: string, text: string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const uri = await vscode.window.showSaveDialog(
    folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, name) },
  );
  if (uri !== undefined) {
    await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  }
}

/** A page with nothing in it: a panel builds what it shows in its script, so that it is the same outside of VS Code. */
function html(webview: vscode.Webview, folder: vscode.Uri, page: Page): string {
  const nonce = randomBytes(18).toString("base64");
  const resource = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(folder, name)).toString();
  const policy = [
    "default-src 'none'",
    `style-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}' 'wasm-unsafe-eval'`,
    `font-src ${webview.cspSource}`,
    ...(page.policy ?? []),
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1.0">
  <link rel="stylesheet" href="${resource(`${page.name}.css`)}">
  <title>${page.title.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`)}</title>
</head>
<body>
  <script nonce="${nonce}" src="${resource(`${page.name}.js`)}"></script>
</body>
</html>`;
}
