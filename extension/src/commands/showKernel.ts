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
import { newList } from "../host/lists";
import type { Server } from "../host/server";

/** @param place what it is about; the cursor of the active editor where it is left out */
export async function showKernel(services: Services, place?: Partial<Place>): Promise<void> {
  const at = placeOf(place);
  if (at === undefined) {
    return;
  }
  const { uri, line } = at;
  const found = await kernelsAt(services, uri, line);
  if (found.kernels.length === 0) {
    void showWithLog("information", found.reason || vscode.l10n.t("No kernel came from line {0}.", line + 1));
    return;
  }
  const [only, another] = found.kernels;
  const later = found.running ? new LaterKernels(services.server, found, uri, line) : undefined;
  const kernel =
    another === undefined ? only : await pickKernel(services, found.kernels, at, later).finally(() => later?.dispose());
  if (kernel !== undefined) {
    await services.documents.show(kernel.uri, {
      line: kernel.line,
      column: columnBeside(vscode.Uri.parse(kernel.uri, true)),
      preserveFocus: true,
    });
  }
  if (another === undefined) {
    later?.onDidChange(({ kernels, running }) => {
      if (!running && kernels.length > 1) {
        void offerAll(kernels, line, () => showKernel(services, { uri: uri.toString(), line }));
      }
    });
  }
}

/** Says that there are more kernels than the one that was opened before the run had ended. */
async function offerAll(kernels: KernelChoice[], line: number, show: () => Promise<void>): Promise<void> {
  const all = vscode.l10n.t("Show All");
  const message = vscode.l10n.t("IRScope: {0} came from line {1}.", units.kernelsOf(kernels), line + 1);
  if ((await vscode.window.showInformationMessage(message, all)) === all) {
    await show();
  }
}

/** The kernels of a line while their run goes on: asked for again whenever the store has more, and once at its end. */
class LaterKernels implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<KernelsAt>();
  readonly onDidChange = this.changes.event;
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly first: KernelsAt,
    private readonly uri: vscode.Uri,
    private readonly line: number,
  ) {
    this.subscription = server.onDidChangeRuns(({ run }) => void (run === first.run && this.ask()));
  }

  dispose(): void {
    this.subscription.dispose();
    this.changes.dispose();
  }

  private async ask(): Promise<void> {
    const asked = { uri: this.uri.toString(), line: this.line };
    const now = await this.server.request(KernelsAtRequest, asked).catch(() => undefined);
    const ended = now?.running !== true;
    // A run that was cancelled, or whose text was edited, is not the one that answers now: what it gave stays.
    if (now !== undefined && now.run === this.first.run) {
      this.changes.fire(now);
    }
    if (ended) {
      this.dispose();
    }
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

const MOST_OPS = 4;
const MOST_LINES = 4;
/** Characters: a row has room for about 80 of all together, and the editor cuts off ends, which tell names apart. */
const MOST_OF_OP = 20;
const MOST_OF_HEADING = 32;
const MOST_OF_NAME = 12;

const LANGUAGES: Partial<Record<string, string>> = {
  cpp: "C++",
  triton: "Triton",
  extern: vscode.l10n.t("library call"),
};

const TO_LIBRARY: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("go-to-file"),
  tooltip: vscode.l10n.t("Go to the Library's Line"),
};

type Choice = vscode.QuickPickItem & { kernel?: KernelChoice };

/** @param later what fills the list while the run goes on; what is marked in it stays marked */
async function pickKernel(
  { documents }: Services,
  kernels: KernelChoice[],
  { uri, line }: { uri: vscode.Uri; line: number },
  later: LaterKernels | undefined,
): Promise<KernelChoice | undefined> {
  const list = newList<Choice>();
  let shown = "";
  const fill = (now: KernelChoice[], running: boolean): void => {
    const marked = list.activeItems[0]?.kernel;
    if (JSON.stringify(now) !== shown) {
      shown = JSON.stringify(now); // New items take the mark from a list for a moment, so they come only with news.
      list.items = choicesOf(now, uri);
      if (marked !== undefined) {
        list.activeItems = list.items.filter(({ kernel }) => kernel?.uri === marked.uri && kernel.name === marked.name);
      }
    }
    list.placeholder = running
      ? vscode.l10n.t("{0} so far came from line {1}; the run goes on", units.kernelsOf(now), line + 1)
      : vscode.l10n.t("{0} came from line {1}", units.kernelsOf(now), line + 1);
    list.busy = running;
    const compiles = new Set(now.map(compileOf));
    const title = vscode.l10n.t("Show Generated Kernel");
    list.title = compiles.size === 1 ? `${title} · ${withoutIcons([...compiles].join())}` : title;
  };
  Object.assign(list, {
    matchOnDescription: true,
    matchOnDetail: true,
    keepScrollPosition: true,
  });
  fill(kernels, later !== undefined);
  later?.onDidChange((now) => fill(now.kernels, now.running));
  list.onDidTriggerItemButton(({ item: { kernel } }) => {
    if (kernel?.innermost) {
      list.hide();
      void documents.open(kernel.innermost);
    }
  });
  const chosen = await new Promise<KernelChoice | undefined>((resolve) => {
    list.onDidAccept(() => resolve(list.activeItems[0]?.kernel));
    list.onDidHide(() => resolve(undefined));
    list.show();
  });
  list.dispose();
  return chosen;
}

function choicesOf(kernels: KernelChoice[], uri: vscode.Uri): Choice[] {
  const choices: Choice[] = [];
  const several = new Set(kernels.map(({ compile }) => compile)).size > 1;
  let [program, group] = ["", ""];
  for (const kernel of kernels) {
    const own = [several ? compileOf(kernel) : "", kernel.direction].filter((part) => part !== "").join(" · ");
    if (choices.length === 0 || own !== program || kernel.heading !== group) {
      const first = own === program ? "" : own;
      const heading = [first, endOf(kernel.heading, first.length)].filter((part) => part !== "").join(" · ");
      choices.push({ label: visible(heading), kind: vscode.QuickPickItemKind.Separator });
      [program, group] = [own, kernel.heading];
    }
    choices.push(choiceOf(kernel, uri));
  }
  return choices;
}

/** The end of a module's path: the editor draws a heading beside the first item below it, which needs room, too. @param before characters in front of it */
function endOf(group: string, before: number): string {
  let end = group;
  while (end.length > MOST_OF_HEADING - before && end.includes(".")) {
    end = end.slice(end.indexOf(".") + 1);
  }
  return end === group ? group : `…${end}`;
}

function compileOf({ compile, function: name }: KernelChoice): string {
  return `${compile} ${name}`;
}

/** First what tells kernels apart, since names of kernels are long and begin alike. */
function choiceOf(kernel: KernelChoice, uri: vscode.Uri): Choice {
  const ops = kernel.ops.slice(0, MOST_OPS).map((op) => (op.length > MOST_OF_OP ? `${op.slice(0, MOST_OF_OP)}…` : op));
  const shown = ops.join(" · ") + (kernel.ops.length > MOST_OPS ? " · …" : "");
  const facts = [LANGUAGES[kernel.language] ?? kernel.language, kernel.bytes === 0 ? "" : units.size(kernel.bytes)];
  return {
    kernel,
    label: `$(circuit-board) ${withoutIcons(shown === "" ? kernel.name : shown)}`,
    description: withoutIcons(facts.filter((fact) => fact !== "").join(" · ")),
    detail: withoutIcons(
      [originsOf(kernel, uri), layerOf(kernel), endOfName(kernel)].filter((part) => part !== "").join(" · "),
    ),
    buttons: kernel.innermost ? [TO_LIBRARY] : [],
  };
}

/** `…d_mul_sum_10`: names begin alike, say again what the operations are, and end with a number. */
function endOfName({ name }: KernelChoice): string {
  return name.length > MOST_OF_NAME ? `…${name.slice(-MOST_OF_NAME)}` : name;
}

/** The layer of a kernel whose heading stands for several: `layers.1`, `down_blocks.0.resnets.1`; the heading has the rest. */
function layerOf({ module, heading }: KernelChoice): string {
  return heading.includes("×") ? (/[^.]*\.?\b\d+(\..*\b\d+)?(?=\.|$)/.exec(module)?.[0] ?? module) : "";
}

/** The innermost line where that is in another file or there are many here, else those of the document that is asked about. */
function originsOf({ innermost, origins }: KernelChoice, uri: vscode.Uri): string {
  const isHere = innermost === null || sameUri(innermost.uri, uri.toString());
  const own = origins.filter((origin) => innermost === null || sameUri(origin.uri, uri.toString()));
  const lines = [...new Set(own.map((origin) => origin.line + 1))].sort((a, b) => a - b);
  if (innermost !== null && (!isHere || lines.length === 0 || lines.length > MOST_LINES)) {
    return `${path.basename(vscode.Uri.parse(innermost.uri, true).fsPath)}:${innermost.line + 1}`;
  }
  if (lines.length === 0) {
    return "";
  }
  const text = lines.join(", ");
  return lines.length > 1 ? vscode.l10n.t("from lines {0}", text) : vscode.l10n.t("from line {0}", text);
}
