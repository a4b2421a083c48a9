/** Where in a stage a command lands that was called on a line: at what the line became, or came from. */

import * as vscode from "vscode";
import { sameUri, wireUri } from "../host/documents";
import { activeCellEditor } from "../host/notebooks";
import { CounterpartsRequest } from "../host/requests";
import type { Place, StageItem } from "../protocol";
import type { Services } from "./context";

/** The line at the cursor; undefined if no text is active. */
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
  const [found] = await landings(services, [stage], place);
  if (found === undefined) {
    const title = stage.title || stage.name;
    const text = vscode.l10n.t("{0}: no line of it belongs to line {1}.", title, place.line + 1);
    vscode.window.setStatusBarMessage(`IRScope: ${text}`, MESSAGE_MS);
  }
  return found?.lines ?? [];
}

/** The stages of one run that have lines which belong to a place, with these lines. */
export async function landings<T extends StageItem>(
  services: Services,
  stages: readonly T[],
  place: Place | undefined,
): Promise<{ stage: T; lines: number[] }[]> {
  const [first] = stages;
  if (place === undefined || first === undefined) {
    return [];
  }
  const asked = { run: first.run, uri: place.uri, line: place.line, among: stages.map(({ uri }) => uri) };
  // Landing is a courtesy: where it fails, the stage opens at its beginning.
  const { places } = await services.server.request(CounterpartsRequest, asked).catch(() => ({ places: [] }));
  return stages.flatMap((stage) => {
    const lines = places.find(({ uri }) => sameUri(uri, stage.uri))?.lines ?? [];
    return lines.length === 0 ? [] : [{ stage, lines }];
  });
}

const MESSAGE_MS = 6_000;
