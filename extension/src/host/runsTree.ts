/** The tree *run → compile → stages and kernels*. */

import * as path from "node:path";
import * as vscode from "vscode";
import { sameUri } from "./documents";
import * as units from "../units";
import { countsOf, headingsOf, isWorthHeadings, type Heading } from "../headings";
import { isScript, rowsOf, type ScriptRuns } from "../runGroups";
import { visible } from "../panels/visible";
import type { CaptureGap, CompileItem, KernelItem, Place, RunItem, RunTree, StageItem } from "../protocol";
import { ReportRequest, RunsRequest } from "./requests";
import { ServerUnavailable, type Server } from "./server";

export type Element =
  | { kind: "script"; item: ScriptRuns }
  | { kind: "earlier"; items: RunItem[]; parent: Element }
  | { kind: "run"; item: RunItem; parent?: Element }
  | { kind: "compile"; run: RunItem; item: CompileItem }
  | { kind: "stage"; item: StageItem; parent: Element }
  | { kind: "heading"; item: Heading; parent: Element }
  | { kind: "kernel"; item: KernelItem; parent: Element }
  | { kind: "gaps"; items: CaptureGap[]; run: RunItem }
  | { kind: "gap"; item: CaptureGap; parent: Element }
  | { kind: "note"; text: string; icon: string; parent: Element };

/** Many changes come in a row while a script runs. */
const REFRESH_DELAY_MS = 200;

export class RunsTree implements vscode.TreeDataProvider<Element>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Element | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Element>;
  private readonly subscriptions: vscode.Disposable[] = [];
  /** By run: where the compiles of a run are listed. */
  private readonly runs = new Map<string, Element & { kind: "run" }>();
  private readonly reports = new Map<string, RunTree>();
  private refreshTimer: NodeJS.Timeout | undefined;

  constructor(private readonly server: Server) {
    this.view = vscode.window.createTreeView("irscope.runs", { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions.push(
      this.view,
      this.changed,
      server.onDidChangeRuns(({ run }) => {
        this.reports.delete(run);
        this.refreshSoon();
      }),
      server.onDidChangeState(() => this.refresh()),
    );
  }

  refresh(): void {
    this.reports.clear();
    this.changed.fire(undefined);
  }

  /** Reveals a run, and in it the compile that starts at `line` of `uri` when there is one. */
  async reveal(run: string, place?: Place): Promise<void> {
    // A refresh in the middle would make the editor lose the element, so a pending one is waited for.
    while (this.refreshTimer !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, REFRESH_DELAY_MS));
    }
    try {
      await this.tryToReveal(run, place);
    } catch {
      await this.tryToReveal(run, place); // A script that runs now changes the tree at any moment.
    }
  }

  async getChildren(element?: Element): Promise<Element[]> {
    try {
      return await this.children(element);
    } catch (error) {
      if (error instanceof ServerUnavailable) {
        return []; // The empty view says what to do.
      }
      throw error;
    }
  }

  getParent(element: Element): Element | undefined {
    switch (element.kind) {
      case "script":
        return undefined;
      case "run":
        return element.parent;
      case "compile":
      case "gaps":
        return this.runs.get(element.run.run);
      default:
        return element.parent;
    }
  }

  getTreeItem(element: Element): vscode.TreeItem {
    return shown(this.treeItem(element));
  }

  private treeItem(element: Element): vscode.TreeItem {
    switch (element.kind) {
      case "script":
        return scriptItem(element.item);
      case "earlier":
        return earlierItem(element.items, idOf(element.parent));
      case "run":
        return runItem(element.item, element.parent?.kind === "script");
      case "compile":
        return compileItem(element.run, element.item);
      case "stage":
        return stageItem(element.item);
      case "heading":
        return headingItem(element.item, idOf(element.parent));
      case "kernel":
        return kernelItem(element.item);
      case "gaps":
        return gapsItem(element.items, element.run);
      case "gap":
        return gapItem(element.item);
      case "note": {
        const item = new vscode.TreeItem(element.text);
        item.iconPath = new vscode.ThemeIcon(element.icon);
        return item;
      }
    }
  }

  dispose(): void {
    clearTimeout(this.refreshTimer);
    this.subscriptions.forEach((each) => void each.dispose());
  }

  private async tryToReveal(run: string, place?: Place): Promise<void> {
    await this.getChildren();
    const found = this.runs.get(run);
    if (found === undefined) {
      void vscode.window.showInformationMessage(
        vscode.l10n.t("This run is no longer in the store. Save the file to run it again."),
      );
      return;
    }
    const compiles = place === undefined ? [] : await this.getChildren(found);
    const compile = compiles.find(
      (each) => each.kind === "compile" && each.item.line === place?.line && sameUri(each.item.uri, place.uri),
    );
    await this.view.reveal(compile ?? found, { select: true, focus: true, expand: true });
  }

  private refreshSoon(): void {
    this.refreshTimer ??= setTimeout(() => {
      this.refreshTimer = undefined;
      this.changed.fire(undefined);
    }, REFRESH_DELAY_MS);
  }

  private async children(element?: Element): Promise<Element[]> {
    switch (element?.kind) {
      case undefined: {
        const { runs } = await this.server.request(RunsRequest, { eachPipeline: true });
        return this.rows(runs);
      }
      case "script":
        return childrenOfScript(element, this.runs);
      case "earlier":
        return element.items.flatMap(({ run }) => this.runs.get(run) ?? []);
      case "run":
        return this.childrenOfRun(element, await this.report(element.item.run));
      case "compile":
        return childrenOfCompile(element, element.item);
      case "heading":
        return childrenOfHeading(element, element.item);
      case "gaps":
        return element.items.map((item) => ({ kind: "gap", item, parent: element }));
      default:
        return [];
    }
  }

  private rows(runs: RunItem[]): Element[] {
    this.runs.clear();
    return rowsOf(runs).map((row) => {
      if (isScript(row)) {
        const script: Element = { kind: "script", item: row };
        const earlier: Element = { kind: "earlier", items: row.earlier, parent: script };
        row.newest.forEach((item) => this.runs.set(item.run, { kind: "run", item, parent: script }));
        row.earlier.forEach((item) => this.runs.set(item.run, { kind: "run", item, parent: earlier }));
        return script;
      }
      const run = { kind: "run", item: row } as const;
      this.runs.set(row.run, run);
      return run;
    });
  }

  private childrenOfRun(run: Element & { kind: "run" }, tree: RunTree): Element[] {
    const compiles: Element[] = tree.compiles.map((item) => ({ kind: "compile", run: run.item, item }));
    if (compiles.length === 0 && run.item.outcome !== null) {
      const text = run.item.message || vscode.l10n.t("Nothing was compiled in this run.");
      compiles.push({ kind: "note", text, icon: "info", parent: run });
    }
    return tree.gaps.length === 0 ? compiles : [...compiles, { kind: "gaps", items: tree.gaps, run: run.item }];
  }

  private async report(run: string): Promise<RunTree> {
    const known = this.reports.get(run);
    if (known !== undefined) {
      return known;
    }
    const tree = await this.server.request(ReportRequest, { run });
    if (tree.item.outcome !== null) {
      this.reports.set(run, tree);
    }
    return tree;
  }
}

/** Names are those of scripts and stores: what cannot be seen in them is written out. */
function shown(item: vscode.TreeItem): vscode.TreeItem {
  item.label = visible(typeof item.label === "string" ? item.label : "");
  if (typeof item.description === "string") {
    item.description = visible(item.description);
  }
  item.tooltip = visible(typeof item.tooltip === "string" ? item.tooltip : item.label);
  if (item.accessibilityInformation !== undefined) {
    item.accessibilityInformation = { label: visible(item.accessibilityInformation.label) };
  }
  return item;
}

function childrenOfScript(script: Element & { kind: "script" }, runs: ReadonlyMap<string, Element>): Element[] {
  const newest = script.item.newest.flatMap(({ run }) => runs.get(run) ?? []);
  const { earlier } = script.item;
  return earlier.length === 0 ? newest : [...newest, { kind: "earlier", items: earlier, parent: script }];
}

function childrenOfCompile(parent: Element, compile: CompileItem): Element[] {
  const headings = headingsOf(compile);
  if (isWorthHeadings(headings)) {
    return headings.map((item) => ({ kind: "heading", item, parent }));
  }
  const children = headings.flatMap((heading) => childrenOfHeading(parent, heading));
  return children.length > 0
    ? children
    : [{ kind: "note", text: vscode.l10n.t("No stage was captured."), icon: "info", parent }];
}

function childrenOfHeading(parent: Element, { stages, kernels }: Heading): Element[] {
  return [
    ...stages.map((item) => ({ kind: "stage", item, parent }) as const),
    ...kernels.map((item) => ({ kind: "kernel", item, parent }) as const),
  ];
}

function idOf(element: Element): string {
  switch (element.kind) {
    case "script":
      return `script/${element.item.script}`;
    case "run":
      return element.item.run;
    case "compile":
      return `${element.run.run}/${element.item.id}`;
    default:
      return element.kind;
  }
}

const RUN_ICONS: Record<string, [icon: string, color?: string]> = {
  completed: ["pass", "testing.iconPassed"],
  "script-error": ["error", "testing.iconFailed"],
  crashed: ["flame", "testing.iconFailed"],
  "environment-error": ["warning", "list.warningForeground"],
  budget: ["watch"],
  cancelled: ["circle-slash"],
};

function scriptItem(runs: ScriptRuns): vscode.TreeItem {
  const item = new vscode.TreeItem(path.basename(runs.script), vscode.TreeItemCollapsibleState.Expanded);
  const all = [...runs.newest, ...runs.earlier];
  const pipelines = [...new Set(all.map(({ pipeline }) => pipeline))];
  item.id = `script/${runs.script}`;
  item.iconPath = new vscode.ThemeIcon("file-code");
  item.description = `${units.count(pipelines.length, "pipeline")} · ${units.count(all.length, "run")}`;
  item.tooltip = [runs.script, vscode.l10n.t("pipelines {0}", pipelines.join(", "))].join("\n");
  return item;
}

function earlierItem(runs: RunItem[], parent: string): vscode.TreeItem {
  const item = new vscode.TreeItem(vscode.l10n.t("Earlier runs"), vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `${parent}/earlier`;
  item.iconPath = new vscode.ThemeIcon("history");
  item.description = units.count(runs.length, "run");
  return item;
}

/** Below its script a run is called by its pipeline. */
function runItem(run: RunItem, isBelowScript: boolean): vscode.TreeItem {
  const label = isBelowScript ? (run.lane === "fast" ? "dynamo" : run.pipeline) : path.basename(run.script);
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Collapsed);
  const [icon, color] = run.outcome === null ? ["loading~spin"] : (RUN_ICONS[run.outcome] ?? ["question"]);
  item.id = run.run;
  item.iconPath = new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color));
  // A side bar is narrow: what tells runs apart comes first.
  const facts = [
    run.lane,
    units.count(run.findings, "finding"),
    ...(run.kernels > 0 ? [units.count(run.kernels, "kernel")] : []),
    run.outcome === null ? vscode.l10n.t("running") : units.duration(run.seconds),
    units.clock(run.started),
  ];
  item.description = facts.join(" · ");
  item.tooltip = [
    run.script,
    `${run.outcome ?? vscode.l10n.t("running")}${run.message === "" ? "" : `: ${run.message}`}`,
    [
      run.lane === "fast" ? vscode.l10n.t("fast lane") : vscode.l10n.t("deep lane"),
      units.duration(run.seconds),
      units.count(run.compiles, "compile"),
      units.count(run.findings, "finding"),
      units.count(run.kernels, "kernel"),
    ].join(", "),
    vscode.l10n.t("pipeline {0}, run {1}", run.pipeline, run.run),
  ].join("\n");
  item.contextValue = "run";
  item.accessibilityInformation = {
    label: [
      vscode.l10n.t("Run of {0}", path.basename(run.script)),
      run.outcome ?? vscode.l10n.t("running"),
      ...facts,
    ].join(", "),
  };
  return item;
}

const COMPILE_ICONS: Record<string, [icon: string, color?: string]> = {
  compiled: ["symbol-method"],
  "graph-break": ["debug-disconnect", "list.warningForeground"],
  skipped: ["debug-step-over"],
  error: ["error", "list.errorForeground"],
};

function compileItem(run: RunItem, compile: CompileItem): vscode.TreeItem {
  const item = new vscode.TreeItem(`${compile.id} ${compile.function}`, vscode.TreeItemCollapsibleState.Collapsed);
  const [icon, color] = COMPILE_ICONS[compile.outcome] ?? ["symbol-method"];
  item.id = `${run.run}/${compile.id}`;
  item.iconPath = new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color));
  const facts = [
    ...(compile.outcome === "compiled" ? [] : [compile.outcome.replace("-", " ")]),
    units.count(compile.graphOps, "op"),
    ...(compile.restarts > 0 ? [units.count(compile.restarts, "restart")] : []),
    units.duration(compile.seconds),
  ];
  item.description = facts.join(" · ");
  const place = compile.uri === "" ? "" : `\n${vscode.Uri.parse(compile.uri).fsPath}:${compile.line + 1}`;
  const head = vscode.l10n.t("Compile {0} of {1}: {2}", compile.id, compile.function, compile.outcome);
  item.tooltip = `${head}\n${facts.join(", ")}${place}`;
  item.contextValue = compile.uri === "" ? "compileWithoutSource" : "compile";
  return item;
}

function stageItem(stage: StageItem): vscode.TreeItem {
  const item = new vscode.TreeItem(stage.title || stage.name);
  item.id = `${stage.run}/${stage.stage}`;
  item.iconPath = new vscode.ThemeIcon(stage.isGraph ? "type-hierarchy-sub" : "file-code");
  item.description = units.stageSize(stage);
  item.tooltip = `${stage.title || stage.name} (${stage.language}, ${units.stageSize(stage)})`;
  item.contextValue = stage.isGraph ? "graphStage" : "stage";
  item.command = { command: "irscope.openStage", title: vscode.l10n.t("Open"), arguments: [stage.uri] };
  return item;
}

function headingItem(heading: Heading, parent: string): vscode.TreeItem {
  const item = new vscode.TreeItem(heading.title, vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `${parent}/heading/${heading.title}`;
  item.iconPath = new vscode.ThemeIcon(heading.kernels.length > 0 ? "circuit-board" : "layers");
  item.description = countsOf(heading);
  return item;
}

function kernelItem(kernel: KernelItem): vscode.TreeItem {
  const item = new vscode.TreeItem(kernel.name);
  item.id = `${kernel.run}/${kernel.stage}/${kernel.name}`;
  item.iconPath = new vscode.ThemeIcon("symbol-function");
  const lines = [...new Set(kernel.origins.map((origin) => origin.line + 1))].sort((a, b) => a - b);
  const places =
    lines.length > 1 ? vscode.l10n.t("lines {0}", lines.join(", ")) : vscode.l10n.t("line {0}", lines.join());
  item.description = [kernel.language, ...(lines.length > 0 ? [places] : [])].join(" · ");
  item.tooltip = `${kernel.name} (${kernel.language})`;
  item.contextValue = kernel.origins.length > 0 ? "kernel" : "kernelWithoutSource";
  item.command = {
    command: "irscope.openStage",
    title: vscode.l10n.t("Open"),
    arguments: [kernel.uri, kernel.line],
  };
  return item;
}

function gapsItem(gaps: CaptureGap[], run: RunItem): vscode.TreeItem {
  const item = new vscode.TreeItem(vscode.l10n.t("Not captured"), vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `${run.run}/gaps`;
  item.iconPath = new vscode.ThemeIcon("warning");
  item.description = units.count(gaps.length, "gap");
  item.tooltip = vscode.l10n.t("What this run could not capture, and why.");
  return item;
}

function gapItem(gap: CaptureGap): vscode.TreeItem {
  const item = new vscode.TreeItem(gap.what);
  item.description = gap.why;
  item.tooltip = `${gap.what}\n${gap.why}`;
  return item;
}
