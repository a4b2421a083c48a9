/** The colours of lines: package.json declares them, so that themes and users can change them. */

import * as vscode from "vscode";

/** As many as package.json has `irscope.line1` … */
export const PALETTE_SIZE = 10;

export interface LineStyles extends vscode.Disposable {
  /** One for each colour of the palette. */
  palette: vscode.TextEditorDecorationType[];
  /** Lines that came from several, or that called what was compiled. */
  several: vscode.TextEditorDecorationType;
  /** Holds the chips that say which lines those are. */
  chips: vscode.TextEditorDecorationType;
  /** The counterparts of the line that the cursor is on. */
  counterpart: vscode.TextEditorDecorationType;
}

export function createStyles(): LineStyles {
  const whole = (color: string): vscode.TextEditorDecorationType =>
    vscode.window.createTextEditorDecorationType({
      isWholeLine: true,
      backgroundColor: new vscode.ThemeColor(color),
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    });
  const palette = Array.from({ length: PALETTE_SIZE }, (_, slot) => whole(colourOf(slot)));
  const several = whole("irscope.lineOfSeveral");
  const chips = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  const counterpart = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("irscope.counterpartBackground"),
    borderColor: new vscode.ThemeColor("irscope.counterpartBorder"),
    borderStyle: "solid",
    borderWidth: "0 0 0 3px",
    overviewRulerColor: new vscode.ThemeColor("irscope.counterpartBorder"),
    overviewRulerLane: vscode.OverviewRulerLane.Center,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  const all = [...palette, several, chips, counterpart];
  return { palette, several, chips, counterpart, dispose: () => all.forEach((each) => each.dispose()) };
}

/** The theme colour of a line's number in its run. */
export function colourOf(number: number): string {
  return `irscope.line${(number % PALETTE_SIZE) + 1}`;
}
