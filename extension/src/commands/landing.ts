/** Where in a stage a command lands that was called on a line: at what the line became, or came from. */

import * as vscode from "vscode";
import { sameUri, wireUri } from "../host/documents";
import { activeCellEditor } from "../host/notebooks";
import { CounterpartsRequest } from "../host/requests";
import type { Place, StageItem } from "../protocol";
import type { Services } from "./context";

/** The line at the cursor; undefined where no text is active. */
export function cursorPlace(): Place | undefined {
  const editor = vscode.window.activeTextEditor ?? activeCellEditor();
  return editor && { uri: wireUri(editor.document.uri), line: editor.selection.active.line };
}

/** The lines of a stage's document that belong to a place; empty if no line does. */
export async function linesIn(services: Services, stage: StageItem, place: Place | undefined): Promise<number[]> {
  if (place === undefined) {
    return [];
  }
  if (sameUri(place.uri, stage.uri)) {
    return [place.line];
  }
  const asked = { run: stage.run, uri: place.uri, line: place.line, among: [stage.uri] };
  // Landing is a courtesy: where it fails, the stage opens at its beginning.
  const { places } = await services.server.request(CounterpartsRequest, asked).catch(() => ({ places: [] }));
  const lines = places.find(({ uri }) => sameUri(uri, stage.uri))?.lines ?? [];
  if (lines.length === 0) {
    const title = stage.title || stage.name;
    const text = vscode.l10n.t("{0}: no line of it belongs to line {1}.", title, place.line + 1);
    vscode.window.setStatusBarMessage(`IRScope: ${text}`, MESSAGE_MS);
  }
  return lines;
}

const MESSAGE_MS = 6_000;
