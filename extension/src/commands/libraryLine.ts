/**
 * IRScope: Go to the Library's Line — from a line of a kernel or another stage to the innermost line that it came from,
 * which may be in an installed package; from a line of Python to those of all that it calls.
 */

import * as path from "node:path";
import * as vscode from "vscode";
import { partsOf, sameUri } from "../host/documents";
import { choose } from "../host/lists";
import { withoutIcons } from "../host/plainText";
import { showWithLog } from "../host/problems";
import { KernelsAtRequest, LinkedLinesRequest } from "../host/requests";
import type { Place } from "../protocol";
import type { Services } from "./context";
import { cursorPlace } from "./landing";

/** @param given a line of a document; that of the cursor where it is left out, as it is in the menu of an editor */
export async function goToLibraryLine(services: Services, given?: Partial<Place>): Promise<void> {
  const place = given?.uri === undefined ? cursorPlace() : { uri: given.uri, line: given.line ?? 0 };
  if (place === undefined) {
    return;
  }
  const lines = await linesAbove(services, place);
  const [only, another] = lines;
  const chosen = another === undefined ? only : await chooseLine(lines);
  if (chosen !== undefined) {
    await services.documents.open(chosen);
  } else if (only === undefined) {
    const text = vscode.l10n.t("No other line of Python is known to have led to line {0}.", place.line + 1);
    void showWithLog("information", text);
  }
}

/** The lines of other files that a line came from, or that it led to; each once. */
async function linesAbove({ server }: Services, { uri, line }: Place): Promise<Place[]> {
  const run = partsOf(vscode.Uri.parse(uri, true))?.run;
  let found: Place[] = [];
  if (run !== undefined) {
    const { keys, lines } = await server.request(LinkedLinesRequest, { uri, run });
    const own = lines.find(([first]) => first === line) ?? [];
    found = own.slice(1).flatMap((index) => keys[index] ?? []);
  }
  if (found.length === 0) {
    const { kernels } = await server.request(KernelsAtRequest, { uri, line });
    found = kernels.flatMap(({ innermost }) => innermost ?? []);
  }
  const others = found.filter((other) => !sameUri(other.uri, uri));
  return [...new Map(others.map((other) => [`${other.uri}#${other.line}`, other])).values()];
}

async function chooseLine(lines: readonly Place[]): Promise<Place | undefined> {
  const items = await Promise.all(
    lines.map(async (place) => {
      const uri = vscode.Uri.parse(place.uri, true);
      return {
        place,
        label: `${path.basename(uri.fsPath)}:${place.line + 1}`,
        description: withoutIcons(await codeAt(uri, place.line)),
      };
    }),
  );
  const options = { title: vscode.l10n.t("Go to the Library's Line"), matchOnDescription: true };
  return (await choose(items, options))?.place;
}

/** The text of a line; empty for a file that is not there any more. */
async function codeAt(uri: vscode.Uri, line: number): Promise<string> {
  try {
    const document = await vscode.workspace.openTextDocument(uri);
    return line < document.lineCount ? document.lineAt(line).text.trim() : "";
  } catch {
    return "";
  }
}
