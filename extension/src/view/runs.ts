/** The rows of the tree: run → panels, compiles → stages and kernels. */

import * as units from "../units";
import type { PanelName } from "../panels/messages";
import { REGISTRY, tabsAbout, type Tab } from "../panels/registry";
import { countsOf, headingsOf, isWorthHeadings, type Heading } from "../headings";
import type { CompileItem, KernelItem, RunItem, RunTree, StageItem } from "../protocol";
import { rankOf, wayOf } from "../runGroups";
import { below, report } from "./server";
import type { Row } from "./tree";
import type { IconName } from "./widgets";

/** What a row can do. */
export interface Opener {
  /** The user's script, and what there is to see of the run first. */
  run(item: RunItem): void;
  text(run: string, uri: string, line: number, title: string, beside: boolean): void;
  panel(panel: PanelName, subject: { run: string; compile?: string; stage?: string; title: string }): void;
}

type Tone = Row["tone"];

const OUTCOMES: Record<string, [icon: IconName, tone?: Tone]> = {
  completed: ["pass", "good"],
  "script-error": ["error", "bad"],
  crashed: ["error", "bad"],
  "environment-error": ["error", "warning"],
  budget: ["watch"],
  cancelled: ["stopped"],
};

const COMPILES: Record<string, [icon: IconName, tone?: Tone]> = {
  compiled: ["compile"],
  "graph-break": ["break", "warning"],
  skipped: ["skip"],
  error: ["error", "bad"],
};

export function panelTitle(panel: PanelName): string {
  return panel === "graph" ? "Graph" : REGISTRY[panel].title;
}

export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

export function rowOfRun(item: RunItem, opener: Opener, panels: ReadonlySet<PanelName>): Row {
  const name = baseName(item.script);
  const [icon, tone] = item.outcome === null ? (["running", "busy"] as const) : (OUTCOMES[item.outcome] ?? ["info"]);
  const facts = [
    ...rankOf(item),
    wayOf(item),
    units.count(item.findings, "finding"),
    ...(item.kernels > 0 ? [units.count(item.kernels, "kernel")] : []),
    item.outcome === null ? "not ended" : units.duration(item.seconds),
    units.clock(item.started),
  ];
  return {
    id: item.run,
    label: name,
    detail: facts.join(" · "),
    icon,
    tone,
    tooltip: `${item.script}\n${item.outcome ?? "not ended"}${item.message === "" ? "" : `: ${item.message}`}\npipeline ${item.pipeline}, run ${item.run}`,
    spoken: `${(item.outcome ?? "not ended").replace("-", " ")} run of`,
    open: () => opener.run(item),
    children: async () => rowsOfRun(await report(item.run), opener, panels),
  };
}

function rowsOfRun(tree: RunTree, opener: Opener, panels: ReadonlySet<PanelName>): Row[] {
  const { run } = tree.item;
  const script = baseName(tree.item.script);
  const panel = (name: PanelName, detail?: string): Row[] =>
    panels.has(name)
      ? [
          {
            id: `${run}#${name}`,
            label: panelTitle(name),
            icon: name,
            ...(detail === undefined ? {} : { detail }),
            open: () => opener.panel(name, { run, title: `${panelTitle(name)} · ${script}` }),
          },
        ]
      : [];
  const rows: Row[] = [
    {
      id: `${run}#script`,
      label: script,
      detail: "the script as it ran",
      icon: "file",
      open: (beside) => opener.text(run, tree.item.scriptUri, 0, script, beside),
    },
    // Few runs have ranks: below all others the row would be noise.
    ...tabsAbout("run")
      .filter((tab) => tab !== "ranks" || tree.ranks > 0)
      .flatMap((tab) => panel(tab, detailOf(tab, tree))),
    ...tree.compiles.map((compile) => rowOfCompile(run, compile, opener, panels)),
  ];
  if (tree.compiles.length === 0) {
    const label = tree.item.outcome === null ? "Nothing was compiled yet" : "Nothing was compiled";
    rows.push({ id: `${run}#none`, label, detail: tree.item.message, icon: "info", tooltip: tree.item.message });
  }
  if (tree.gaps.length > 0) {
    rows.push({
      id: `${run}#gaps`,
      label: "Not captured",
      detail: units.count(tree.gaps.length, "gap"),
      icon: "error",
      tone: "warning",
      children: async () =>
        tree.gaps.map(({ what, why }, index) => ({
          id: `${run}#gap${index}`,
          label: what,
          detail: why,
          tooltip: `${what}\n${why}`,
          icon: "info",
        })),
    });
  }
  return rows;
}

function detailOf(tab: Tab, { item, ranks }: RunTree): string | undefined {
  switch (tab) {
    case "findings":
      return units.count(item.findings, "finding");
    case "ranks":
      return units.count(ranks, "rank");
    default:
      return undefined;
  }
}

function rowOfCompile(run: string, compile: CompileItem, opener: Opener, panels: ReadonlySet<PanelName>): Row {
  const [icon, tone] = COMPILES[compile.outcome] ?? (["compile"] as const);
  const facts = [
    ...(compile.outcome === "compiled" ? [] : [compile.outcome.replace("-", " ")]),
    units.count(compile.graphOps, "op"),
    ...(compile.restarts > 0 ? [units.count(compile.restarts, "restart")] : []),
    units.duration(compile.seconds),
  ];
  const name = `${compile.function} (${compile.id})`;
  const panel = (which: PanelName): Row[] =>
    panels.has(which) && compile.stages.length > 0
      ? [
          {
            id: `${run}/${compile.id}#${which}`,
            label: panelTitle(which),
            icon: which,
            open: () => opener.panel(which, { run, compile: compile.id, title: `${panelTitle(which)} · ${name}` }),
          },
        ]
      : [];
  return {
    id: `${run}/${compile.id}`,
    label: `${compile.id} ${compile.function}`,
    detail: facts.join(" · "),
    tooltip: `Compile ${compile.id} of ${compile.function}: ${compile.outcome}\n${facts.join(", ")}`,
    spoken: "compile",
    icon,
    tone,
    children: async () => [
      ...tabsAbout("compile").flatMap(panel),
      ...rowsOfHeadings(`${run}/${compile.id}`, headingsOf(compile), name, opener),
    ],
  };
}

function rowOfStage(stage: StageItem, compile: string, opener: Opener): Row {
  const title = stage.title || stage.name;
  const size = stage.nodes === null ? units.size(stage.bytes) : units.count(stage.nodes, "node");
  return {
    id: `${stage.run}/${stage.stage}`,
    label: title,
    detail: stage.made ? size : "made when it is opened",
    tooltip: `${title} of ${compile}: ${stage.language}${stage.made ? `, ${size}` : ""}`,
    icon: stage.isGraph ? "graph" : "file",
    open: (beside) => opener.text(stage.run, stage.uri, 0, `${title} · ${compile}`, beside),
  };
}

function rowsOfHeadings(parent: string, headings: Heading[], compile: string, opener: Opener): Row[] {
  const rows = ({ stages, kernels }: Heading): Row[] => [
    ...stages.map((stage) => rowOfStage(stage, compile, opener)),
    ...kernels.map((kernel, index) => rowOfKernel(kernel, index, opener)),
  ];
  if (!isWorthHeadings(headings)) {
    return headings.flatMap(rows);
  }
  return headings.map((heading) => ({
    id: `${parent}#${heading.title}`,
    label: heading.title,
    detail: countsOf(heading),
    icon: "folder",
    holds: new Set(rows(heading).map(({ id }) => id)),
    children: async () => rows(heading),
  }));
}

function rowOfKernel(kernel: KernelItem, index: number, opener: Opener): Row {
  const lines = [...new Set(kernel.origins.map(({ line }) => line + 1))].sort((a, b) => a - b);
  return {
    id: `${kernel.run}/${kernel.stage}#${kernel.name}#${index}`,
    label: kernel.name,
    detail: [
      kernel.language,
      ...(lines.length > 0 ? [`line${lines.length > 1 ? "s" : ""} ${lines.join(", ")}`] : []),
    ].join(" · "),
    icon: "kernel",
    open: (beside) => opener.text(kernel.run, kernel.uri, kernel.line, kernel.name, beside),
    ...(kernel.language === "extern"
      ? {}
      : { children: async () => (await below(kernel)).map((stage) => rowOfStage(stage, kernel.name, opener)) }),
  };
}
