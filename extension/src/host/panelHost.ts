/** What is behind every webview: the page of its panel, and what is done when the panel asks for something. */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import type { Request } from "../panels/ahead";
import type { FromPanel, PanelName, Subject, ToPanel } from "../panels/messages";
import { visible } from "../panels/visible";
import type { Place } from "../protocol";
import { showWithLog } from "./problems";
import { messageOf, type Server } from "./server";

/** A page, from a script and a style sheet of this name in extension/dist. */
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
  /** What the panel may ask for: its content is not trusted. */
  requests: readonly string[];
  ask(request: Request): Promise<unknown>;
  /** Something is on the screen, by what it is. */
  drawn(what: string): void;
  open?(place: Place, preserveFocus: boolean): Promise<void>;
  show?(panel: PanelName, subject: Subject): void;
  title?(title: string): void;
}

/** Fills a webview with a page, which the host answers from then on. */
export function fill(webview: vscode.Webview, extensionUri: vscode.Uri, page: Page, host: Host): void {
  webview.options = { enableScripts: true, localResourceRoots: [] };
  webview.onDidReceiveMessage((message: FromPanel) => void receive(webview, message, host));
  webview.html = html(vscode.Uri.joinPath(extensionUri, "extension", "dist"), page);
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
    case "comparePipelines":
      return attempt(() => vscode.commands.executeCommand("irscope.comparePipelines"));
    case "profile":
      return attempt(() => vscode.commands.executeCommand("irscope.profile", { memory: message.memory === true }));
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
      throw new Error(vscode.l10n.t("The panel may not ask for {0}.", method));
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

/* eslint-disable no-restricted-syntax -- What follows is HTML, and shows no text. */

/**
 * A page with nothing in it: a panel builds what it shows in its script, so that it is the same outside of VS Code.
 *
 * Script and styles are in the page itself. As files they would be asked for through VS Code's service worker, which in
 * the browser sometimes never answers a panel that was made while it started: the panel would stay blank.
 */
function html(folder: vscode.Uri, page: Page): string {
  const nonce = randomBytes(18).toString("base64");
  const text = (name: string): string => readFileSync(vscode.Uri.joinPath(folder, name).fsPath, "utf8");
  const policy = [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `script-src 'nonce-${nonce}'`,
    ...(page.policy ?? []),
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1.0">
  <style nonce="${nonce}">${text(`${page.name}.css`)}</style>
  <title>${page.title.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`)}</title>
</head>
<body>
  <script nonce="${nonce}">${text(`${page.name}.js`).replace(/<(?=!--|\/?script)/gi, "\\x3C")}</script>
</body>
</html>`;
}
