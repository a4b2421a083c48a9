/** Jupyter notebooks: their cells are documents like any other, with a notebook around them. */

import * as vscode from "vscode";

export const CELL_SCHEME = "vscode-notebook-cell";

/** The notebook that a document is a cell of. */
export function notebookOf(document: vscode.TextDocument): vscode.NotebookDocument | undefined {
  return document.uri.scheme === CELL_SCHEME
    ? vscode.workspace.notebookDocuments.find((notebook) =>
        notebook.getCells().some((cell) => cell.document === document),
      )
    : undefined;
}

/** The notebook that the user is in; undefined if that is a text editor. */
export function activeNotebook(): vscode.NotebookDocument | undefined {
  const text = vscode.window.activeTextEditor?.document;
  return text === undefined || text.uri.scheme === CELL_SCHEME
    ? vscode.window.activeNotebookEditor?.notebook
    : undefined;
}

/** The editor of the selected cell of the active notebook, also where the notebook has the focus and not the cell. */
export function activeCellEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeNotebookEditor;
  if (editor === undefined || editor.selection.start >= editor.notebook.cellCount) {
    return undefined;
  }
  const { document } = editor.notebook.cellAt(editor.selection.start);
  return vscode.window.visibleTextEditors.find((each) => each.document === document);
}

/** Shows a line of a cell in its notebook; undefined if the URI is not a cell of an open one. */
export async function showCell(
  uri: vscode.Uri,
  line: number | undefined,
  column: vscode.ViewColumn,
): Promise<vscode.TextEditor | undefined> {
  for (const notebook of vscode.workspace.notebookDocuments) {
    const cell = notebook.getCells().find((each) => each.document.uri.toString() === uri.toString());
    if (cell === undefined) {
      continue;
    }
    const selection = new vscode.NotebookRange(cell.index, cell.index + 1);
    const shown = await vscode.window.showNotebookDocument(notebook, { viewColumn: column, selections: [selection] });
    shown.revealRange(selection, vscode.NotebookEditorRevealType.InCenterIfOutsideViewport);
    await vscode.commands.executeCommand("notebook.cell.edit");
    const editor = vscode.window.visibleTextEditors.find((each) => each.document === cell.document);
    if (editor !== undefined && line !== undefined) {
      const start = new vscode.Position(Math.min(line, cell.document.lineCount - 1), 0);
      editor.selection = new vscode.Selection(start, start);
    }
    return editor;
  }
  return undefined;
}
