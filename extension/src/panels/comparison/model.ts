/** What several pipelines made of one script, as the rows of a table with a column for each pipeline. */

import * as units from "../../units";
import type { Figure, ComparedPipeline, ComparedPlace, ComparedStage, Timing } from "../results";

export interface Cell {
  text: string;
  /** Why there is no number, or what it is about. */
  why: string;
}

export interface Row {
  title: string;
  /** Part of the row above, or said about it. */
  isDetail: boolean;
  cells: Cell[];
}

const NO_NUMBER = "–";

const ROWS: [title: string, isDetail: boolean, cell: (one: ComparedPipeline) => Cell][] = [
  ["Operators", false, ({ operators }) => figure(operators, number)],
  ["in the last stage", true, ({ taken }) => figure(taken, number)],
  ["fused", true, ({ fused }) => figure(fused, number)],
  ["Kernels", false, ({ kernels }) => figure(kernels, number)],
  ["Library calls", false, ({ libraryCalls }) => figure(libraryCalls, number)],
  ["Bytes moved", false, ({ movedBytes }) => figure(movedBytes, units.size, "by ")],
  ["Compile time", false, ({ compileSeconds }) => figure(compileSeconds, units.duration)],
  ["Call, median", false, ({ call }) => time(call)],
  ["quartiles", true, ({ call }) => quartiles(call)],
  ["Call without compile", false, ({ eager }) => time(eager)],
  ["Difference to eager", false, ({ difference }) => figure(difference, small)],
  ["relative", true, ({ relativeDifference }) => figure(relativeDifference, small)],
];

export function rowsOf(pipelines: ComparedPipeline[]): Row[] {
  return ROWS.map(([title, isDetail, cell]) => ({ title, isDetail, cells: pipelines.map(cell) }));
}

/** Whether there is a number at all; a column of dashes tells nothing that the problem does not. */
export function hasFigures(pipeline: ComparedPipeline): boolean {
  return pipeline.problem === "" || rowsOf([pipeline]).some(({ cells }) => cells[0]?.text !== NO_NUMBER);
}

/** The stages of a run by compile; one alone needs no heading. */
export function stagesOf({ stages }: ComparedPipeline): { heading: string; stages: ComparedStage[] }[] {
  const found = new Map<string, ComparedStage[]>();
  for (const stage of stages) {
    found.set(stage.compile, [...(found.get(stage.compile) ?? []), stage]);
  }
  return [...found].map(([compile, stages]) => ({ heading: found.size > 1 ? compile : "", stages }));
}

/** Places with the same words are one with their number. */
export function placesOf(places: ComparedPlace[]): { place: ComparedPlace; count: number }[] {
  const found = new Map<string, { place: ComparedPlace; count: number }>();
  for (const place of places) {
    const key = JSON.stringify([place.what, place.why, place.place.uri, place.place.line]);
    found.set(key, { place, count: (found.get(key)?.count ?? 0) + 1 });
  }
  return [...found.values()];
}

function figure({ value, why }: Figure, shown: (value: number) => string, about = ""): Cell {
  return value === null ? { text: NO_NUMBER, why } : { text: shown(value), why: why === "" ? "" : about + why };
}

function time({ median, why }: Timing): Cell {
  return median === null ? { text: NO_NUMBER, why } : { text: units.duration(median), why: "" };
}

function quartiles({ low, high, rounds, why }: Timing): Cell {
  return low === null || high === null
    ? { text: NO_NUMBER, why }
    : { text: `${unbroken(low)} – ${unbroken(high)}`, why: `of ${units.count(rounds, "round")}` };
}

/** A time that is not broken between its number and its unit where a column is narrow. */
function unbroken(seconds: number): string {
  return units.duration(seconds).replaceAll(" ", "\u00a0");
}

function number(value: number): string {
  return units.count(value);
}

/** `1.2e-7`: two digits are enough to compare. */
function small(value: number): string {
  return value === 0 ? "0" : value.toExponential(1).replace(".0e", "e");
}
