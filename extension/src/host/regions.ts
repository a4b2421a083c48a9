/** Marks in the source: compiled, broken and skipped regions, lines that are in a kernel, and lines that cost time. */

import * as vscode from "vscode";
import type { Region, RegionKind } from "../protocol";
import { RegionsRequest } from "./requests";
import { SECTION } from "./settings";
import type { Server } from "./server";
import { usesTorch } from "./torchFiles";

const SETTING = "decorations.enabled";
/** After an edit the editor moves the marks by itself; the server is asked once the typing pauses. */
const PAUSE_MS = 250;

export class Regions implements vscode.Disposable {
  private readonly types: Record<Mark, vscode.TextEditorDecorationType>;
  private readonly subscriptions: vscode.Disposable[];
  private readonly marked = new vscode.EventEmitter<{ uri: string; regions: Region[] }>();
  /** Fires when an editor shows the marks of its document. */
  readonly onDidMark = this.marked.event;
  private timer: NodeJS.Timeout | undefined;
  private newest = 0;

  constructor(
    context: vscode.ExtensionContext,
    private readonly server: Server,
  ) {
    this.types = decorationTypes(context);
    const later = (): void => this.later();
    this.subscriptions = [
      ...Object.values(this.types),
      this.marked,
      server.onDidChangeRuns(later),
      server.onDidChangeFile(later),
      server.onDidChangeState(later),
      vscode.window.onDidChangeVisibleTextEditors(later),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && document.languageId === "python") {
          this.later();
        }
      }),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration(`${SECTION}.${SETTING}`)) {
          this.later();
        }
      }),
    ];
    this.later();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.forEach((each) => void each.dispose());
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.markAll(), PAUSE_MS);
  }

  private async markAll(): Promise<void> {
    this.newest += 1;
    const asked = this.newest;
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      if (document.languageId !== "python" || document.uri.scheme === "irscope") {
        continue;
      }
      const regions = await this.regionsOf(document);
      if (asked !== this.newest) {
        return; // Asked again meanwhile.
      }
      if (regions !== undefined) {
        this.mark(editor, regions);
      }
    }
  }

  /** Undefined if the current marks are still valid. */
  private async regionsOf(document: vscode.TextDocument): Promise<Region[] | undefined> {
    const wanted = vscode.workspace.getConfiguration(SECTION, document.uri).get<boolean>(SETTING, true);
    if (!wanted) {
      return [];
    }
    if (this.server.status().state !== "ready") {
      return undefined;
    }
    const version = document.version;
    try {
      const { regions } = await this.server.request(RegionsRequest, { uri: document.uri.toString() });
      return document.version === version ? regions : undefined;
    } catch {
      return undefined; // The server was stopped or restarted; its next state asks again.
    }
  }

  private mark(editor: vscode.TextEditor, regions: Region[]): void {
    const last = editor.document.lineCount - 1;
    const ranges = Object.fromEntries(Object.keys(this.types).map((mark) => [mark, []])) as unknown as Record<
      Mark,
      vscode.DecorationOptions[]
    >;
    for (const { kind, line, endLine, heat } of regions) {
      ranges[kind === "measured" ? heatOf(heat) : kind]?.push({
        range: new vscode.Range(Math.min(line, last), 0, Math.min(endLine, last), Number.MAX_SAFE_INTEGER),
      });
    }
    for (const mark of Object.keys(this.types) as Mark[]) {
      editor.setDecorations(this.types[mark], ranges[mark]);
    }
    if (regions.length > 0 || usesTorch(editor.document)) {
      this.marked.fire({ uri: editor.document.uri.toString(), regions });
    }
  }
}

type Heat = "heat1" | "heat2" | "heat3" | "heat4";
type Mark = Exclude<RegionKind, "measured"> | Heat;

/** Four steps of heat: the dearest line, and those with a half, a quarter and less of its time. */
export function heatOf(share: number): Heat {
  return share > 0.75 ? "heat4" : share > 0.4 ? "heat3" : share > 0.15 ? "heat2" : "heat1";
}

function decorationTypes(context: vscode.ExtensionContext): Record<Mark, vscode.TextEditorDecorationType> {
  const color = (name: string): vscode.ThemeColor => new vscode.ThemeColor(`irscope.${name}`);
  const bar = (name: string, style: string): vscode.DecorationRenderOptions => ({
    isWholeLine: true,
    borderWidth: "0 0 0 2px",
    borderStyle: style,
    borderColor: color(`${name}Border`),
    backgroundColor: color(`${name}Background`),
    overviewRulerColor: color(`${name}Ruler`),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  const heat = (name: Heat): vscode.TextEditorDecorationType =>
    vscode.window.createTextEditorDecorationType({
      isWholeLine: true,
      backgroundColor: color(`${name}Background`),
      overviewRulerColor: color(`${name}Background`),
      overviewRulerLane: vscode.OverviewRulerLane.Right,
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    });
  const icon = (theme: string): vscode.Uri =>
    vscode.Uri.joinPath(context.extensionUri, "extension", "media", `kernel-${theme}.svg`);
  return {
    compiled: vscode.window.createTextEditorDecorationType(bar("compiledRegion", "solid")),
    broken: vscode.window.createTextEditorDecorationType(bar("brokenRegion", "solid")),
    skipped: vscode.window.createTextEditorDecorationType(bar("skippedRegion", "dashed")),
    kernel: vscode.window.createTextEditorDecorationType({
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
      dark: { gutterIconPath: icon("dark") },
      light: { gutterIconPath: icon("light") },
      gutterIconSize: "85%",
    }),
    heat1: heat("heat1"),
    heat2: heat("heat2"),
    heat3: heat("heat3"),
    heat4: heat("heat4"),
  };
}
