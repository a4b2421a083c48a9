/** Which files this extension has something to say about; elsewhere it shows nothing. */

import * as vscode from "vscode";
import { SCHEME } from "./documents";
import { activeNotebook, notebookOf } from "./notebooks";

const TORCH_IMPORT = /^[ \t]*(?:import|from)[ \t]+torch\b/m;

/** For a cell: whether its notebook does, since one cell imports what all of them use. */
export function usesTorch(document: vscode.TextDocument): boolean {
  if (document.languageId !== "python" || document.uri.scheme === SCHEME) {
    return false;
  }
  const cells = notebookOf(document)
    ?.getCells()
    .map((cell) => cell.document);
  return (cells ?? [document]).some((each) => each.languageId === "python" && TORCH_IMPORT.test(each.getText()));
}

/**
 * Keeps three context keys for `when` clauses: `irscope.usesTorch` (the active editor, else a visible one), `irscope.active` (once there
 * was such a file or a run in this window), `irscope.documentIsGraph` (the active editor is a graph stage).
 */
export class TorchFiles implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private readonly changed = new vscode.EventEmitter<boolean>();
  /** Fires when the active editor turns from a file that uses torch to one that does not, or back. */
  readonly onDidChange = this.changed.event;
  active = false;
  current = false;

  constructor() {
    this.subscriptions = [
      this.changed,
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.window.onDidChangeActiveNotebookEditor(() => this.update()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === vscode.window.activeTextEditor?.document) {
          this.update();
        }
      }),
    ];
    this.update();
  }

  /** A run exists: its tree is worth showing, whatever file is open. */
  activate(): void {
    if (!this.active) {
      this.active = true;
      setContext("irscope.active", true);
    }
  }

  update(): void {
    const document = vscode.window.activeTextEditor?.document;
    const before = this.current;
    // With the focus in a panel there is no active editor; visible files still count.
    const cells = activeNotebook()
      ?.getCells()
      .map((cell) => cell.document);
    const python = cells?.find((each) => each.languageId === "python");
    const visible = python === undefined ? vscode.window.visibleTextEditors.map((each) => each.document) : [python];
    const shown = document === undefined || python !== undefined ? visible : [document];
    this.current = shown.some(usesTorch);
    setContext("irscope.usesTorch", this.current);
    setContext("irscope.documentIsGraph", document?.uri.scheme === SCHEME && /-graph\.py$/.test(document.uri.path));
    if (this.current) {
      this.activate();
    }
    if (before !== this.current) {
      this.changed.fire(this.current);
    }
  }

  dispose(): void {
    this.subscriptions.forEach((each) => void each.dispose());
  }
}

export function setContext(key: string, value: unknown): void {
  void vscode.commands.executeCommand("setContext", key, value);
}
