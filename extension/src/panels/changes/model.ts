/** What changed since an earlier run as rows of text. */

import * as units from "../../units";
import { placeText } from "../text";
import type { ChangedChoice, ChangedCompile, ChangedFinding, ChangedKernel, ChangedLine, Changes } from "../results";

export type Sign = "gone" | "new" | "changed";

export const SIGNS: Record<Sign, string> = { gone: "−", new: "+", changed: "~" };

export type Change =
  | { what: "finding"; sign: Sign; item: ChangedFinding; isOtherPipeline: boolean }
  | { what: "compile"; sign: Sign; item: ChangedCompile }
  | { what: "kernel"; sign: Sign; item: ChangedKernel }
  | { what: "line"; sign: Sign; item: ChangedLine }
  | { what: "choice"; sign: Sign; item: ChangedChoice };

export interface Section {
  title: string;
  /** `3 kept`. */
  kept: string;
  rows: Change[];
}

export function sectionsOf(result: Changes): Section[] {
  const isOtherPipeline = result.run?.pipeline !== result.since?.pipeline;
  return [
    {
      title: "Findings",
      kept: `${result.findingsKept} kept`,
      rows: [
        ...result.findingsNew.map((item) => ({ what: "finding", sign: "new", item, isOtherPipeline }) as const),
        ...result.findingsGone.map((item) => ({ what: "finding", sign: "gone", item, isOtherPipeline }) as const),
      ],
    },
    {
      title: "Compiles",
      kept: `${result.compilesSame} the same`,
      rows: [
        ...result.compilesGone.map((item) => ({ what: "compile", sign: "gone", item }) as const),
        ...result.compilesNew.map((item) => ({ what: "compile", sign: "new", item }) as const),
        ...result.compilesChanged.map((item) => ({ what: "compile", sign: "changed", item }) as const),
      ],
    },
    {
      title: "Kernels",
      kept: `${result.kernelsKept} kept`,
      rows: [
        ...result.kernelsGone.map((item) => ({ what: "kernel", sign: "gone", item }) as const),
        ...result.kernelsNew.map((item) => ({ what: "kernel", sign: "new", item }) as const),
        ...result.kernelsChanged.map((item) => ({ what: "kernel", sign: "changed", item }) as const),
      ],
    },
    ...measuredSections(result),
  ];
}

/** Measured time and autotuning: only of runs that were profiled, or chose otherwise. */
function measuredSections({ measured, choicesChanged }: Changes): Section[] {
  const found: Section[] = [];
  if (measured !== null) {
    const { before, after, words, lines } = measured;
    const kept = `${units.duration(before)} → ${units.duration(after)} a step: ${words}`;
    found.push({ title: "Measured time", kept, rows: lines.map((item) => ({ what: "line", sign: "changed", item })) });
  }
  if (choicesChanged.length > 0) {
    const kept = `${units.count(choicesChanged.length, "operator")} with another choice`;
    found.push({
      title: "Autotuning",
      kept,
      rows: choicesChanged.map((item) => ({ what: "choice", sign: "changed", item })),
    });
  }
  return found;
}

/** `2.0 ms → 1.5 ms (−500 µs)`. */
export function lineChange({ before, after }: ChangedLine): string {
  const by = `${after <= before ? "−" : "+"}${units.duration(Math.abs(after - before))}`;
  return `${units.duration(before)} → ${units.duration(after)} (${by})`;
}

/**
 * The word for the sign, and whether it is good news: a finding that is gone is, and so is less time; the others are neither.
 * A finding that only one of two pipelines has is neither new nor fixed.
 */
export function wordOf(change: Change): { word: string; tone: "" | "better" | "worse" } {
  const { what, sign } = change;
  if (what === "line") {
    const isFaster = change.item.after < change.item.before;
    return isFaster ? { word: "faster", tone: "better" } : { word: "slower", tone: "worse" };
  }
  if (what !== "finding" || change.isOtherPipeline) {
    return { word: sign, tone: "" };
  }
  return sign === "gone" ? { word: "fixed", tone: "better" } : { word: "new", tone: "worse" };
}

/** Where a finding that is gone was: its line is one of the older text, so that no link leads there. */
export function wasAt({ place }: ChangedFinding): string {
  return `was at ${placeText(place)}`;
}

export interface TimeChange {
  title: string;
  /** `−1.2 s`. */
  by: string;
  isBetter: boolean;
  before: { text: string; share: number };
  after: { text: string; share: number };
}

export function timeChanges({ compileSeconds, seconds }: Changes): TimeChange[] {
  const pairs = [
    ["compile time", compileSeconds],
    ["the whole run", seconds],
  ] as const;
  return pairs.flatMap(([title, pair]) => {
    if (pair === null) {
      return [];
    }
    const [before, after] = pair;
    const most = Math.max(before, after, 1e-9);
    return [
      {
        title,
        by: `${after <= before ? "−" : "+"}${units.duration(Math.abs(after - before))}`,
        isBetter: after <= before,
        before: { text: units.duration(before), share: before / most },
        after: { text: units.duration(after), share: after / most },
      },
    ];
  });
}

/** The earlier runs to choose from; those of another pipeline name it. */
export function olderRuns({ older, run: newer }: Changes): { value: string; text: string }[] {
  return older.map((run) => {
    const parts = [units.clock(run.started), units.count(run.findings, "finding"), units.duration(run.seconds)];
    const pipeline = run.pipeline === newer?.pipeline ? [] : [run.pipeline];
    return { value: run.run, text: [...parts, ...pipeline].join(" · ") };
  });
}
