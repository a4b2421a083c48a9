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
  /** There is a backward, so there are two rows. */
  both: boolean;
  /** Seconds of the stage that took longest. */
  most: number;
}

export function rowOf(stages: PipelineStage[]): Row {
  return {
    both: stages.some((stage) => stage.track === "backward"),
    most: Math.max(...stages.map((stage) => stage.seconds ?? 0)),
  };
}

/** What a card says of its stage. */
export interface Card {
  kind: string;
  facts: string[];
  /** Its time as a share of the longest. */
  share: number;
  /** Which of the two rows it is in, if there are two. */
  side: string;
}

export function cardOf(stage: PipelineStage, { both, most }: Row): Card {
  return {
    kind: KINDS[stage.role] ?? "kernel",
    facts: [
      stage.count === null ? units.size(stage.bytes) : units.count(stage.count, stage.unit.replace(/s$/, "")),
      ...(stage.seconds === null ? [] : [units.duration(stage.seconds)]),
    ],
    share: most > 0 ? (stage.seconds ?? 0) / most : 0,
    side: both && stage.track !== "shared" ? stage.track : "",
  };
}

/** Where a card is in the grid: counted from 1, as CSS counts. */
export interface Cell {
  column: number;
  row: number;
  rows: number;
}

/** How many cards fit beside each other. */
export function cardsPerLine(width: number, least: number, gap: number): number {
  return Math.max(1, Math.floor((width + gap) / (least + gap)));
}

/**
 * Where the cards are, by the ID of their stage. Columns that do not fit go on in the next line, whose rows are below
 * those of the line before: first the forward's, then the backward's; what both share takes all rows of its line.
 */
export function cellsOf(stages: PipelineStage[], perLine: number): Map<string, Cell> {
  const found = new Map<string, Cell>();
  const last = Math.max(0, ...stages.map(({ column }) => column));
  let row = 1;
  for (let first = 0; first <= last; first += perLine) {
    const columns = Array.from({ length: perLine }, (_, at) => stages.filter(({ column }) => column === first + at));
    const most = (track: Track): number => Math.max(...columns.map((column) => countOf(column, track)));
    const rows = Math.max(most("forward") + most("backward"), most("shared"));
    columns.forEach((column, at) => {
      const next = { shared: row, forward: row, backward: row + most("forward") };
      const spare = rows - countOf(column, "shared");
      for (const { stage, track } of column) {
        const taken = track === "shared" && next.shared === row ? spare + 1 : 1;
        found.set(stage, { column: at + 1, row: next[track], rows: taken });
        next[track] += taken;
      }
    });
    row += rows;
  }
  return found;
}

function countOf(stages: PipelineStage[], track: Track): number {
  return stages.filter((stage) => stage.track === track).length;
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

/** The next stage with a match, or the one before. */
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
