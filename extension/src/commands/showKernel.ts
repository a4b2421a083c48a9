/**
 * IRScope: Show Generated Kernel — the kernels that came from a line of a Python file, from a function (on its `def`),
 * from a finding, or from a line of a stage, beside it.
 */

import * as path from "node:path";
import * as vscode from "vscode";
import { partsOf, sameUri, wireUri } from "../host/documents";
import { visible } from "../panels/visible";
import { withoutIcons } from "../host/plainText";
import * as units from "../units";
import type { KernelChoice, KernelsAt, Place } from "../protocol";
import { showWithLog } from "../host/problems";
import { KernelsAtRequest } from "../host/requests";
import { activePythonFile, requireTrust, withRunProgress, type Services } from "./context";
import { choose } from "../host/lists";

/** @param place what it is about; the cursor of the active editor where it is left out */
export async function showKernel(services: Services, place?: Partial<Place>): Promise<void> {
  const at = placeOf(place);
  if (at === undefined) {
    return;
  }
  const { uri, line } = at;
  const { kernels, reason } = await kernelsAt(services, uri, line);
  if (kernels.length === 0) {
    void showWithLog("information", reason || vscode.l10n.t("No kernel came from line {0}.", line + 1));
    return;
  }
  const kernel = kernels.length === 1 ? kernels[0] : await pickKernel(kernels, line);
  if (kernel !== undefined) {
    await services.documents.show(kernel.uri, {
      line: kernel.line,
      column: columnBeside(vscode.Uri.parse(kernel.uri, true)),
      preserveFocus: true,
    });
  }
}

function placeOf(place: Partial<Place> | undefined): { uri: vscode.Uri; line: number } | undefined {
  if (place?.uri !== undefined) {
    return { uri: vscode.Uri.parse(place.uri, true), line: place.line ?? 0 };
  }
  const active = vscode.window.activeTextEditor;
  const editor = active !== undefined && partsOf(active.document.uri) !== undefined ? active : activePythonFile();
  return editor === undefined ? undefined : { uri: editor.document.uri, line: editor.selection.active.line };
}

async function kernelsAt(services: Services, uri: vscode.Uri, line: number): Promise<KernelsAt> {
  if (partsOf(uri) !== undefined) {
    return services.server.request(KernelsAtRequest, { uri: wireUri(uri), line });
  }
  const run = await requireTrust();
  const title = vscode.l10n.t("kernels of {0}, line {1}", path.basename(uri.fsPath), line + 1);
  return withRunProgress(services, title, uri, (token) =>
    services.server.request(KernelsAtRequest, { uri: uri.toString(), line, run }, token),
  );
}

/** Where the kernel is open already, else beside. */
function columnBeside(uri: vscode.Uri): vscode.ViewColumn {
  const open = vscode.window.visibleTextEditors.find(({ document }) =>
    sameUri(document.uri.toString(), uri.toString()),
  );
  return open?.viewColumn ?? vscode.ViewColumn.Beside;
}

const MOST_OPS = 5;

const LANGUAGES: Partial<Record<string, string>> = {
  cpp: "C++",
  triton: "Triton",
  extern: vscode.l10n.t("library call"),
};

type Choice = vscode.QuickPickItem & { kernel?: KernelChoice };

async function pickKernel(kernels: KernelChoice[], line: number): Promise<KernelChoice | undefined> {
  const choices: Choice[] = [];
  let heading: string | undefined;
  for (const kernel of kernels) {
    const parts = [`${kernel.compile} ${kernel.function}`, kernel.direction, kernel.group];
    const own = parts.filter((part) => part !== "").join(" · ");
    if (own !== heading) {
      heading = own;
      choices.push({ label: visible(own), kind: vscode.QuickPickItemKind.Separator });
    }
    choices.push(choiceOf(kernel));
  }
  const chosen = await choose(choices, {
    title: vscode.l10n.t("Show Generated Kernel"),
    placeHolder: vscode.l10n.t("{0} came from line {1}", units.kernelsOf(kernels), line + 1),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return chosen?.kernel;
}

/** First what tells kernels apart, since names of kernels are long and begin alike. */
function choiceOf(kernel: KernelChoice): Choice {
  const shown = kernel.ops.slice(0, MOST_OPS).join(" · ") + (kernel.ops.length > MOST_OPS ? " · …" : "");
  const facts = [
    kernel.direction,
    kernel.module,
    LANGUAGES[kernel.language] ?? kernel.language,
    kernel.bytes === 0 ? "" : units.size(kernel.bytes),
  ];
  return {
    kernel,
    label: `$(circuit-board) ${withoutIcons(shown === "" ? kernel.name : shown)}`,
    description: withoutIcons(facts.filter((fact) => fact !== "").join(" · ")),
    detail: withoutIcons([originsOf(kernel), kernel.name].filter((part) => part !== "").join(" · ")),
  };
}

function originsOf(kernel: KernelChoice): string {
  const inner = kernel.innermost;
  if (inner !== null && !kernel.origins.some((origin) => origin.uri === inner.uri)) {
    const file = path.basename(vscode.Uri.parse(inner.uri, true).fsPath);
    return vscode.l10n.t("from {0}, line {1}", file, inner.line + 1);
  }
  const lines = [...new Set(kernel.origins.map((origin) => origin.line + 1))].sort((a, b) => a - b);
  if (lines.length === 0) {
    return "";
  }
  const text = lines.join(", ");
  return lines.length > 1 ? vscode.l10n.t("from lines {0}", text) : vscode.l10n.t("from line {0}", text);
}
