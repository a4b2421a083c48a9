/** Measured time as data: rows of tables, what is said of CUDA graphs, and the boxes of one step. */

import type { Place } from "../../protocol";
import * as units from "../../units";
import type { Row } from "../measures/tree";
import type { GapTime, KernelTime, LineTime, Measured } from "../results";
import { placeText } from "../text";

/** Titles of the columns of numbers, and those that a narrow panel leaves out. */
export const COLUMNS = ["Time", "% of step", "Possible", "Lost", "Bound", "Calls"];
export const KERNEL_COLUMNS = [...COLUMNS, "Moved", "Achieved"];
export const GAP_COLUMNS = ["Time", "% of step"];

/** What the tables show, in their order: of lines and kernels those with the most time above what is possible. */
export function lineRows({ lines, step }: Measured): Row[] {
  return sorted(lines).map((line) => ({
    place: line.place,
    name: placeText(line.place),
    detail: line.kernels.join(", "),
    share: share(line.seconds, step),
    cells: numbers(line, step),
  }));
}

export function kernelRows({ kernels, step }: Measured): Row[] {
  return sorted(kernels).map((kernel) => ({
    place: kernel.uri === "" ? undefined : { uri: kernel.uri, line: 0 },
    name: kernel.name,
    detail: kernel.places.length === 0 ? "no line of yours" : kernel.places.map(placeText).join(", "),
    share: share(kernel.seconds, step),
    cells: [...numbers(kernel, step), kernel.bytes === null ? "" : units.size(kernel.bytes), achieved(kernel)],
  }));
}

export function gapRows({ gaps, step }: Measured): Row[] {
  return gaps.map((gap) => ({
    place: gap.place.uri === "" ? undefined : gap.place,
    name: gapName(gap),
    detail: WORDS[gap.kind] ?? "",
    share: share(gap.seconds, step),
    cells: [units.duration(gap.seconds), units.percent(gap.seconds, step)],
  }));
}

function gapName({ kind, place, where }: GapTime): string {
  const at = place.uri === "" ? where : placeText(place);
  return at === "" ? kind : `${kind}, ${at}`;
}

/** What the kinds of gaps mean, for people. */
const WORDS: Record<string, string> = {
  "eager operator": "an operator that is not compiled, as at a graph break",
  guards: "the search for compiled code whose guards hold",
  "generated wrapper": "the generated code around kernels: it allocates, and calls them",
  "graph runtime": "AOTAutograd around a compiled graph",
  python: "Python in a compiled function, between its graphs",
  autograd: "the engine of the backward",
  outside: "the caller, and torch.compile's own entry",
  launch: "the host prepares kernels while the device does nothing",
  waiting: "the host waits for the device",
  copy: "copies between host and device",
  profiler: "the profiler itself",
  unknown: "a compile that was made while the program was measured",
};

/** Measured minus possible, for all calls in a step: what is not known to be possible counts as lost. */
export function above({ seconds, possible }: { seconds: number; possible: number | null }): number {
  return Math.max(0, seconds - (possible ?? 0));
}

function sorted<Item extends LineTime | KernelTime>(items: Item[]): Item[] {
  return [...items].sort((a, b) => above(b) - above(a));
}

function numbers(item: LineTime | KernelTime, step: number): string[] {
  return [
    units.duration(item.seconds),
    units.percent(item.seconds, step),
    item.possible === null ? "" : `${item.refuted ? "≤ " : ""}${units.duration(item.possible)}`,
    item.possible === null || item.refuted ? "" : units.duration(above(item)),
    item.bound,
    units.significant(item.calls),
  ];
}

/** The rate of what bounds a kernel. */
export function achieved({ bound, bytes, flops, seconds }: KernelTime): string {
  if (seconds <= 0) {
    return "";
  }
  if (bound === "compute" && flops !== null) {
    return `${units.flops(flops / seconds)}/s`;
  }
  return bytes === null ? "" : `${units.size(bytes / seconds)}/s`;
}

function share(seconds: number, step: number): number {
  return step > 0 ? Math.min(1, seconds / step) : 0;
}

/** What is said beside the time of a step. */
export function summary(data: Measured): string[] {
  const parts = [`kernels ${units.duration(data.device)} (${units.percent(data.device, data.step)})`];
  if (data.idle !== null && data.profiled > 0) {
    parts.push(`device idle ${units.percent(data.idle, data.profiled)}`);
  }
  return [
    ...parts,
    `${units.percent(data.owned, data.step)} attributed`,
    // Timed without the profiler, a step is what a quarter of the calls are faster than, so that other work on the machine counts less.
    data.programs.length > 0 && data.profiled > 0
      ? `lower quartile of ${units.count(data.steps, "step")}`
      : `${units.count(data.steps, "step")} measured`,
  ];
}

/** What graph breaks and recompilations take in a step, as sentences. */
export function costTexts({ costs }: Pick<Measured, "costs">): { text: string; place: Place | undefined }[] {
  return costs.map(({ what, name, words, place }) => ({
    text: what === "graph-break" ? `Graph break ${name}: ${words}` : `${name} was ${words}`,
    place: place.uri === "" ? undefined : place,
  }));
}

/** What a step did with CUDA graphs, as sentences; those with a place lead there. */
export function graphTexts({ graphs }: Measured): { text: string; place: Place | undefined }[] {
  const { recorded, replayed, skipped, recordings, again, pools } = graphs;
  const said = [];
  if (recordings > 0) {
    said.push(`${units.count(recordings)} recorded`);
  }
  if (replayed > 0) {
    said.push(`${units.significant(replayed)} replayed in a step`);
  }
  if (recorded > 0) {
    said.push(`${units.significant(recorded)} recorded again in a step, though it was warm`);
  }
  return [
    ...(said.length === 0 ? [] : [{ text: said.join(", "), place: undefined }]),
    ...again.map(({ compile, why, count }) => ({
      text: `recorded again, ${compile}${count > 1 ? ` ×${count}` : ""}: ${why}`,
      place: undefined,
    })),
    ...pools.map(({ pool, bytes, used }) => ({
      text: `memory pool ${pool}: ${units.size(bytes)}, ${units.size(used)} in use`,
      place: undefined,
    })),
    ...skipped.map(({ why, place }) => ({ text: `skipped: ${why}`, place: place.uri === "" ? undefined : place })),
  ];
}
