/** The read-only documents of the scheme `irscope`: `irscope:/RUN/STAGE_ID.EXT`, one for each stage and kernel. */

import * as vscode from "vscode";
import { showCell } from "./notebooks";
import { DocumentRequest } from "./requests";
import type { Server } from "./server";

export const SCHEME = "irscope";

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly languageIds = new Map<string, string>();
  private readonly registration: vscode.Disposable;
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  /** The editor asks for the text again, and keeps cursor and scroll position where it is the same. */
  readonly onDidChange = this.changes.event;

  constructor(private readonly server: Server) {
    this.registration = vscode.Disposable.from(
      this.changes,
      server.onDidChangeRuns(({ run, running }) => {
        if (!running) {
          const mine = vscode.workspace.textDocuments.filter(({ uri }) => partsOf(uri)?.run === run);
          mine.forEach(({ uri }) => this.changes.fire(uri));
        }
      }),
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      // A document that the editor restored was not opened by `show`, so its language is set here.
      vscode.workspace.onDidOpenTextDocument((document) => void this.setLanguage(document)),
    );
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const { text, languageId } = await this.server.request(DocumentRequest, { uri: wireUri(uri) }, token);
    this.languageIds.set(uri.toString(), languageId);
    return text;
  }

  /** Opens a document and reveals one of its lines (0-based). */
  async show(uri: string, options: ShowOptions = {}): Promise<vscode.TextEditor> {
    const document = await this.setLanguage(await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true)));
    return showLine(document, options);
  }

  /** Shows a place: where it is open, else stages beside the sources and sources beside the stages. */
  async open({ uri, line }: LineOf, preserveFocus = false): Promise<void> {
    const target = vscode.Uri.parse(uri, true);
    const options = { ...(line === undefined ? {} : { line }), column: columnFor(target), preserveFocus };
    await (target.scheme === SCHEME ? this.show(uri, options) : showSource(uri, options));
  }

  dispose(): void {
    this.registration.dispose();
  }

  private async setLanguage(document: vscode.TextDocument): Promise<vscode.TextDocument> {
    const wanted = this.languageIds.get(document.uri.toString());
    if (document.uri.scheme !== SCHEME || wanted === undefined || wanted === document.languageId) {
      return document;
    }
    const known = await vscode.languages.getLanguages();
    return known.includes(wanted) ? vscode.languages.setTextDocumentLanguage(document, wanted) : document;
  }
}

/** A line (0-based) of a document, or the document. */
export interface LineOf {
  uri: string;
  line?: number;
}

export interface ShowOptions {
  line?: number;
  column?: vscode.ViewColumn;
  preserveFocus?: boolean;
  preview?: boolean;
}

/** Shows one line of a user's file, or of a cell of a notebook. */
export async function showSource(uri: string, options: ShowOptions): Promise<vscode.TextEditor> {
  const column = options.column ?? vscode.ViewColumn.Active;
  const cell = await showCell(vscode.Uri.parse(uri, true), options.line, column);
  if (cell !== undefined) {
    return cell;
  }
  return showLine(await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true)), options);
}

/** The column where the file is open already, so that a source is not opened twice. */
export function columnOf(uri: vscode.Uri): vscode.ViewColumn | undefined {
  const visible = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
  if (visible?.viewColumn !== undefined) {
    return visible.viewColumn;
  }
  return vscode.window.tabGroups.all.find((group) =>
    group.tabs.some((tab) => tab.input instanceof vscode.TabInputText && tab.input.uri.toString() === uri.toString()),
  )?.viewColumn;
}

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

/** The run that an `irscope:` document belongs to, and its stage as the document's path names it (with extension). */
export function partsOf(uri: vscode.Uri): { run: string; rest: string } | undefined {
  const match = uri.scheme === SCHEME ? /^\/([^/]+)\/(.+)$/.exec(uri.path) : null;
  return match === null ? undefined : { run: match[1] ?? "", rest: match[2] ?? "" };
}

/** A URI as the server spells it, without the editor's own escapes. */
export function wireUri(uri: vscode.Uri): string {
  return uri.toString(true);
}

/** True if two spellings (escaped or not) name the same document. */
export function sameUri(left: string, right: string): boolean {
  return left === right || vscode.Uri.parse(left).toString() === vscode.Uri.parse(right).toString();
}

async function showLine(document: vscode.TextDocument, options: ShowOptions): Promise<vscode.TextEditor> {
  const line = Math.min(Math.max(options.line ?? 0, 0), Math.max(document.lineCount - 1, 0));
  const start = document.lineAt(line).range.start.translate(0, document.lineAt(line).firstNonWhitespaceCharacterIndex);
  const editor = await vscode.window.showTextDocument(document, {
    viewColumn: options.column ?? vscode.ViewColumn.Active,
    preserveFocus: options.preserveFocus ?? false,
    preview: options.preview ?? true,
    ...(options.line === undefined ? {} : { selection: new vscode.Range(start, start) }),
  });
  if (options.line !== undefined) {
    editor.revealRange(new vscode.Range(start, start), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
  return editor;
}
