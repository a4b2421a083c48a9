/** The pipeline of a compile as data: which stage is meant, what comes before it, where keys lead. */

import * as units from "../../units";
import type { Place, Role } from "../../protocol";
import type { Pipeline, PipelineStage, Track } from "../results";

export const TRACK_NAMES: Record<Track, string> = {
  shared: "Forward and backward",
  forward: "Forward",
  backward: "Backward",
};

/** The colours of the cards by the role of their stage. */
const KINDS: Partial<Record<Role, string>> = {
  source: "source",
  graph: "graph",
  schedule: "ir",
  text: "ir",
  code: "code",
};

/** What all cards have to know of each other. */
export interface Row {
  columns: number;
  /** There is a backward, so there are two rows. */
  both: boolean;
  /** Seconds of the stage that took longest. */
  most: number;
}

export function rowOf(stages: PipelineStage[]): Row {
  return {
    columns: Math.max(...stages.map((stage) => stage.column)) + 1,
    both: stages.some((stage) => stage.track === "backward"),
    most: Math.max(...stages.map((stage) => stage.seconds ?? 0)),
  };
}

/** What a card says of its stage. */
export interface Card {
  kind: string;
  facts: string[];
  /** The rows of the grid that it takes. */
  rows: string;
  /** Its time as a share of the longest. */
  share: number;
  /** Which of the two rows it is in, where there are two. */
  side: string;
}

export function cardOf(stage: PipelineStage, { both, most }: Row): Card {
  return {
    kind: KINDS[stage.role] ?? "kernel",
    facts: [
      stage.count === null ? units.size(stage.bytes) : units.count(stage.count, stage.unit.replace(/s$/, "")),
      ...(stage.seconds === null ? [] : [units.duration(stage.seconds)]),
    ],
    rows: both ? { shared: "1 / span 2", forward: "1", backward: "2" }[stage.track] : "1",
    share: most > 0 ? (stage.seconds ?? 0) / most : 0,
    side: both && stage.track !== "shared" ? stage.track : "",
  };
}

/** `0/0 forward · 3 ops · 1.2 s` for the choice of a compile. */
export function compileText(one: Pipeline["compiles"][number]): string {
  return `${one.id} ${one.function} · ${units.count(one.graphOps, "op")} · ${units.duration(one.seconds)}`;
}

/** `20 cpp`, `4 library calls`. */
export function kernelCount({ language, count }: Pipeline["kernels"][number]): string {
  return language === "extern" ? units.kernels(0, count) : `${units.count(count)} ${language}`;
}

/** The stage of this id, or the one that a document of this id belongs to. */
export function stageOf(data: Pipeline | undefined, id: string | undefined): PipelineStage | undefined {
  return data?.stages.find(
    (stage) =>
      stage.stage === id ||
      stage.entries.some((entry) => entry.stage === id) ||
      stage.beside.some((entry) => entry.stage === id) ||
      stage.passes.some((pass) => pass.stage === id),
  );
}

/** The stage that is chosen when a pipeline is shown: the one that is wanted, else the first graph. */
export function firstChoice(data: Pipeline, wanted: string | undefined): PipelineStage | undefined {
  return stageOf(data, wanted) ?? data.stages.find((stage) => stage.isGraph) ?? data.stages[0];
}

/** The stage that one was made from. */
export function previousOf(data: Pipeline, stage: PipelineStage): PipelineStage | undefined {
  return pathOf(data, stage)
    .filter((each) => each.column < stage.column)
    .at(-1);
}

/** The stage that an arrow key, Home or End leads to. */
export function neighbour(data: Pipeline, chosen: PipelineStage, key: string): PipelineStage | undefined {
  const way = pathOf(data, chosen);
  const at = way.indexOf(chosen);
  const below = (track: Track): PipelineStage | undefined =>
    data.stages.find((stage) => stage.track === track && stage.column >= chosen.column);
  switch (key) {
    case "ArrowRight":
      return way[at + 1];
    case "ArrowLeft":
      return way[at - 1];
    case "ArrowDown":
      return below("backward");
    case "ArrowUp":
      return below("forward");
    default:
      return key === "Home" ? way[0] : way.at(-1);
  }
}

/** Of the stages with a match the next one, or the one before. */
export function nextMatch(
  data: Pipeline,
  chosen: PipelineStage | undefined,
  matches: ReadonlyMap<string, unknown>,
  by: 1 | -1,
): PipelineStage | undefined {
  const stages = data.stages.filter((stage) => matches.has(stage.stage));
  const at = chosen === undefined ? -1 : stages.indexOf(chosen);
  return stages[(at + by + stages.length) % stages.length];
}

/** A place as `irscope/step` takes it. */
export interface Position {
  stage?: string;
  uri?: string;
  line: number;
}

/** A place of an editor: in a stage of this run, or in a file. */
export function positionOf(data: Pipeline | undefined, { uri, line }: Place): Position | undefined {
  if (uri.startsWith("file:")) {
    return { uri, line };
  }
  if (data === undefined || !decodeURIComponent(uri).startsWith(`irscope:/${data.run}/`)) {
    return undefined;
  }
  const all = data.stages.flatMap((stage) => [...stage.entries, ...stage.passes, ...stage.beside]);
  const entry = all.find((each) => decodeURIComponent(each.uri) === decodeURIComponent(uri));
  return entry === undefined ? undefined : { stage: entry.stage, line };
}

/** The way from the source down the side of a stage. */
function pathOf({ stages }: Pipeline, { track }: PipelineStage): PipelineStage[] {
  const side = track === "shared" ? "forward" : track;
  return stages.filter((stage) => stage.track === "shared" || stage.track === side).sort((a, b) => a.column - b.column);
}
