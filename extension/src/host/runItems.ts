/** The elements of the tree of runs, and how each of them is shown. */

import * as path from "node:path";
import * as vscode from "vscode";
import { countsOf, type Heading } from "../headings";
import { visible } from "../panels/visible";
import type { CaptureGap, CompileItem, KernelItem, RunItem, StageItem } from "../protocol";
import { rankOf, wayOf, type ScriptRuns } from "../runGroups";
import * as units from "../units";

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

export function itemOf(element: Element): vscode.TreeItem {
  return shown(treeItem(element));
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

function treeItem(element: Element): vscode.TreeItem {
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

/** Below its script a run is called by its pipeline; a fast run goes through none of them. */
function nameBelowScript({ lane, pipeline }: RunItem): string {
  return lane === "fast" ? vscode.l10n.t("fast run") : pipeline;
}

function runItem(run: RunItem, isBelowScript: boolean): vscode.TreeItem {
  // The label is cut last: ranks of a job differ in nothing else.
  const label = [isBelowScript ? nameBelowScript(run) : path.basename(run.script), ...rankOf(run)].join(" · ");
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Collapsed);
  const [icon, color] = run.outcome === null ? ["loading~spin"] : (RUN_ICONS[run.outcome] ?? ["question"]);
  item.id = run.run;
  item.iconPath = new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color));
  // A side bar is narrow: what tells runs apart comes first.
  const facts = [
    ...(run.outcome === null ? [vscode.l10n.t("running")] : []),
    ...(isBelowScript ? [] : [wayOf(run)]),
    units.count(run.findings, "finding"),
    ...(run.kernels > 0 ? [units.count(run.kernels, "kernel")] : []),
    ...(run.outcome === null ? [] : [units.duration(run.seconds)]),
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
      ...rankOf(run),
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
