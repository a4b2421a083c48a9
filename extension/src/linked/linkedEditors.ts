/**
 * The visible editors of a run, or of several runs: stages, kernels and the user's files beside them. Lines that belong
 * together have the same colour in all of them, and where the cursor goes in one its counterparts in the others are marked and revealed.
 */

import * as vscode from "vscode";
import { partsOf, sameUri, SCHEME, wireUri } from "../host/documents";
import type { LinkedLines } from "../protocol";
import { CounterpartsRequest, LinkedLinesRequest } from "../host/requests";
import type { Server } from "../host/server";
import { setContext } from "../host/torchFiles";
import { colourOf, createStyles, type LineStyles } from "./colours";
import { paint, type Painting } from "./painting";

const STATE = "irscope.lineColours";
const CURSOR_DELAY_MS = 60;
const EDIT_DELAY_MS = 300;
const MOST_KEPT = 40;
const SOURCES = ["file", "vscode-notebook-cell"];

export class LinkedEditors implements vscode.Disposable {
  private readonly styles: LineStyles = createStyles();
  private readonly kept = new Map<string, LinkedLines>();
  private readonly subscriptions: vscode.Disposable[] = [];
  private cursorTimer: NodeJS.Timeout | undefined;
  private paintTimer: NodeJS.Timeout | undefined;
  private cursorCount = 0;
  private paintCount = 0;
  private readonly changes = new vscode.EventEmitter<void>();
  /** Something was drawn, or taken away. */
  readonly onDidPaint = this.changes.event;
  /** What is drawn now, by document; for the tests of this extension. */
  readonly painted = new Map<string, Painting>();
  readonly marked = new Map<string, number[]>();

  constructor(
    private readonly server: Server,
    private readonly state: vscode.Memento,
  ) {
    setContext(STATE, this.enabled);
    this.subscriptions.push(
      this.styles,
      this.changes,
      vscode.window.onDidChangeVisibleTextEditors(() => this.repaintSoon(0)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.follow(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => editor !== undefined && this.follow(editor)),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && this.runs().length > 0 && this.isShown(document.uri)) {
          this.repaintSoon(EDIT_DELAY_MS);
        }
      }),
      server.onDidChangeRuns(({ run }) => {
        for (const key of this.kept.keys()) {
          if (key.includes(run)) {
            this.kept.delete(key);
          }
        }
        if (this.runs().includes(run)) {
          this.repaintSoon(EDIT_DELAY_MS);
        }
      }),
      server.onDidChangeState((now) => now === "ready" && this.repaintSoon(0)),
    );
  }

  get enabled(): boolean {
    return this.state.get<boolean>(STATE, true);
  }

  /** IRScope: Toggle Line Colours. */
  async toggle(): Promise<void> {
    await this.state.update(STATE, !this.enabled);
    setContext(STATE, this.enabled);
    await this.repaint();
  }

  dispose(): void {
    clearTimeout(this.cursorTimer);
    clearTimeout(this.paintTimer);
    this.subscriptions.forEach((each) => void each.dispose());
  }

  // --- which editors ------------------------------------------------------------------------------------------------

  /** The runs whose documents are on the screen, that of the active editor first. */
  private runs(): string[] {
    const active = vscode.window.activeTextEditor;
    const editors = [...(active === undefined ? [] : [active]), ...vscode.window.visibleTextEditors];
    const found = editors.map(({ document }) => partsOf(document.uri)?.run).filter((run) => run !== undefined);
    return [...new Set(found)];
  }

  /** The run that an editor is linked with: its own, or of a Python file the first on the screen. */
  private runOf(document: vscode.TextDocument): string | undefined {
    if (document.uri.scheme === SCHEME) {
      return partsOf(document.uri)?.run;
    }
    const isSource = SOURCES.includes(document.uri.scheme) && document.languageId === "python";
    return isSource ? this.runs()[0] : undefined;
  }

  private isShown(uri: vscode.Uri): boolean {
    return vscode.window.visibleTextEditors.some(({ document }) => sameUri(document.uri.toString(), uri.toString()));
  }

  // --- colours ------------------------------------------------------------------------------------------------------

  private repaintSoon(delay: number): void {
    clearTimeout(this.paintTimer);
    this.paintTimer = setTimeout(() => void this.repaint(), delay);
  }

  private async repaint(): Promise<void> {
    const count = (this.paintCount += 1);
    this.clearMarks();
    this.painted.clear();
    await Promise.all(
      vscode.window.visibleTextEditors.map(async (editor) => {
        const run = this.enabled ? this.runOf(editor.document) : undefined;
        const found = run === undefined ? undefined : await this.linesOf(editor.document, run);
        if (count === this.paintCount) {
          this.draw(editor, found === undefined ? undefined : paint(found));
        }
      }),
    );
    if (count === this.paintCount) {
      this.changes.fire();
      const active = vscode.window.activeTextEditor;
      if (active !== undefined) {
        this.follow(active);
      }
    }
  }

  private async linesOf(document: vscode.TextDocument, run: string): Promise<LinkedLines | undefined> {
    const version = document.uri.scheme === SCHEME ? 0 : document.version;
    const beside = this.runs().filter((other) => other !== run);
    const key = `${run}\n${document.uri.toString()}\n${version}\n${beside.sort().join()}`;
    const known = this.kept.get(key);
    if (known !== undefined) {
      return known;
    }
    try {
      const found = await this.server.request(LinkedLinesRequest, { uri: wireUri(document.uri), run, beside });
      this.kept.set(key, found);
      for (const oldest of this.kept.keys()) {
        if (this.kept.size <= MOST_KEPT) {
          break;
        }
        this.kept.delete(oldest);
      }
      return found;
    } catch {
      return undefined; // No server now, or a document that is in no run: it has no colours.
    }
  }

  private draw(editor: vscode.TextEditor, painting: Painting | undefined): void {
    const { lineCount } = editor.document;
    const ranges = (lines: number[]): vscode.Range[] =>
      lines.filter((line) => line < lineCount).map((line) => new vscode.Range(line, 0, line, 0));
    this.styles.palette.forEach((style, slot) => editor.setDecorations(style, ranges(painting?.bySlot[slot] ?? [])));
    editor.setDecorations(this.styles.several, ranges(painting?.several ?? []));
    const chips = (painting?.chips ?? []).filter(({ line }) => line < lineCount);
    let place = 0;
    editor.setDecorations(
      this.styles.chips,
      chips.map(({ line, text, slot }, index): vscode.DecorationOptions => {
        const end = editor.document.lineAt(line).range.end;
        const first = chips[index - 1]?.line !== line;
        place = first ? 0 : place + 1;
        return {
          // What follows a line is drawn in the order in which the ranges begin.
          range: new vscode.Range(line, Math.min(place, end.character), line, end.character),
          renderOptions: {
            after: {
              contentText: `\u00a0${text}\u00a0`,
              color: new vscode.ThemeColor("editorCodeLens.foreground"),
              margin: first ? "0 0 0 2em" : "0 0 0 3px",
              ...(slot === undefined ? {} : { backgroundColor: new vscode.ThemeColor(colourOf(slot)) }),
            },
          },
        };
      }),
    );
    if (painting !== undefined) {
      this.painted.set(editor.document.uri.toString(), painting);
    }
  }

  // --- the cursor ---------------------------------------------------------------------------------------------------

  /** Marks the counterparts of the cursor's line; only of the editor that the user works in. */
  private follow(editor: vscode.TextEditor): void {
    if (editor !== vscode.window.activeTextEditor) {
      return;
    }
    clearTimeout(this.cursorTimer);
    this.cursorTimer = setTimeout(() => void this.mark(editor), CURSOR_DELAY_MS);
  }

  private async mark(editor: vscode.TextEditor): Promise<void> {
    const count = (this.cursorCount += 1);
    const run = this.enabled ? this.runOf(editor.document) : undefined;
    const others = vscode.window.visibleTextEditors.filter(
      (other) => other !== editor && run !== undefined && this.runOf(other.document) !== undefined,
    );
    if (run === undefined || others.length === 0) {
      this.clearMarks();
      return;
    }
    const uris = new Map(others.map((other) => [wireUri(other.document.uri), other.document.uri.toString()]));
    try {
      const { places } = await this.server.request(CounterpartsRequest, {
        uri: wireUri(editor.document.uri),
        line: editor.selection.active.line,
        run,
        among: [...uris.keys()],
      });
      if (count !== this.cursorCount) {
        return;
      }
      this.marked.clear();
      places.forEach(({ uri, lines }) => this.marked.set(uris.get(uri) ?? uri, lines));
      editor.setDecorations(this.styles.counterpart, []);
      others.forEach((other) => this.drawMarks(other, this.marked.get(other.document.uri.toString()) ?? []));
      this.changes.fire();
    } catch {
      this.clearMarks();
    }
  }

  private drawMarks(editor: vscode.TextEditor, found: number[]): void {
    const lines = found.filter((line) => line < editor.document.lineCount);
    editor.setDecorations(
      this.styles.counterpart,
      lines.map((line) => new vscode.Range(line, 0, line, 0)),
    );
    // A line that came from many (a kernel's head, its call) is everybody's counterpart: it is not what is looked for.
    const several = new Set(this.painted.get(editor.document.uri.toString())?.several);
    const exact = lines.filter((line) => !several.has(line));
    const wanted = exact.length > 0 ? exact : lines;
    const isVisible = wanted.some((line) =>
      editor.visibleRanges.some((range) => range.start.line <= line && line <= range.end.line),
    );
    const [first] = wanted;
    if (first !== undefined && !isVisible) {
      const range = new vscode.Range(first, 0, first, 0);
      editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }
  }

  private clearMarks(): void {
    this.cursorCount += 1;
    this.marked.clear();
    vscode.window.visibleTextEditors.forEach((editor) => editor.setDecorations(this.styles.counterpart, []));
  }
}
