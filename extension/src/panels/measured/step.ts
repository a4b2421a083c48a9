/** One step as boxes of a flame chart: rows of the host, and below them the device with the gaps between its kernels. */

import type { Place } from "../../protocol";
import * as units from "../../units";
import type { Measured, StepRow } from "../results";
import type { Box } from "../measures/box";

/** Kinds of time in groups, each with a colour. */
export const GROUPS: { group: string; title: string; kinds: string[] }[] = [
  { group: "kernels", title: "Kernels", kinds: ["kernel"] },
  { group: "inductor", title: "Launch, wait, copy", kinds: ["launch", "waiting", "copy"] },
  { group: "aot", title: "Guards and generated code", kinds: ["guards", "generated wrapper", "graph runtime"] },
  { group: "dynamo", title: "Python, autograd", kinds: ["python", "autograd", "outside", "unknown", "profiler"] },
  { group: "eager", title: "Eager operators", kinds: ["eager operator"] },
];
const IDLE = "idle";
/** The least share of the step: shorter gaps are not drawn by themselves. */
const LEAST_GAP = 1e-4;

/** A box, with what it is a piece of. */
export interface StepBox extends Box {
  kind: string;
  place: Place | undefined;
  children: StepBox[];
}

/** All boxes, parents before children; the first one is the whole step. None if the profile has no step. */
export function stepBoxes(data: Measured): StepBox[] {
  const end = data.pieces.reduce((most, [, start, seconds]) => Math.max(most, start + seconds), 0);
  if (end <= 0) {
    return [];
  }
  const whole = box(
    undefined,
    "One step",
    `with the profiler; without it ${units.duration(data.step)}`,
    "",
    0,
    end,
    undefined,
  );
  const boxes = [whole];
  const host = data.pieces.filter(([row]) => row === 0);
  const device = data.pieces.filter(([row]) => row === 1);
  addHost(boxes, whole, host, data);
  if (device.length > 0) {
    addDevice(boxes, whole, device, host, data);
  }
  boxes.forEach((each, index) => (each.id = index));
  return boxes;
}

function addHost(boxes: StepBox[], whole: StepBox, rows: StepRow[], data: Measured): void {
  let around: StepBox | undefined;
  let before = "";
  for (const row of rows) {
    const [, start, seconds, kind, name] = row;
    const title = compileOf(row, data);
    if (title === "") {
      around = undefined;
    } else if (around === undefined || title !== before) {
      around = add(boxes, box(whole, title, "compiled", "compile", start, 0, placeOf(row, data)));
    }
    before = title;
    if (around !== undefined) {
      around.size = start + seconds - around.start;
    }
    const word = data.words[kind] ?? "";
    const parent = around ?? whole;
    add(boxes, box(parent, data.words[name] ?? "", word, word, start, seconds, placeOf(row, data), parent.depth + 1));
  }
}

/** `0/0`, `0/0 backward`; empty around the compiled functions. */
function compileOf([, , , , , compile, backward]: StepRow, data: Measured): string {
  const name = data.words[compile] ?? "";
  return name !== "" && backward === 1 ? `${name} backward` : name;
}

function addDevice(boxes: StepBox[], whole: StepBox, rows: StepRow[], host: StepRow[], data: Measured): void {
  const busy = rows.reduce((sum, [, , seconds]) => sum + seconds, 0);
  const label = `busy ${units.percent(Math.min(busy, whole.size), whole.size)}`;
  const depth = boxes.reduce((most, one) => Math.max(most, one.depth), 0) + 1;
  const root = add(boxes, box(whole, "Device", label, "device", 0, whole.size, undefined, depth));
  let at = 0;
  for (const row of [...rows].sort((a, b) => a[1] - b[1])) {
    const [, start, seconds, kind, name] = row;
    if (start - at > LEAST_GAP * whole.size) {
      add(boxes, idle(root, at, start, host, data));
    }
    const begin = Math.max(at, start);
    const length = start + seconds - begin;
    if (length > 0) {
      const word = data.words[kind] ?? "";
      add(boxes, box(root, data.words[name] ?? "", word, word, begin, length, placeOf(row, data)));
    }
    at = Math.max(at, start + seconds);
  }
  if (whole.size - at > LEAST_GAP * whole.size) {
    add(boxes, idle(root, at, whole.size, host, data));
  }
}

/** Where the device does nothing: what the host mostly did meanwhile says why. */
function idle(root: StepBox, from: number, to: number, host: StepRow[], data: Measured): StepBox {
  const kinds = new Map<string, number>();
  for (const [, start, seconds, kind] of host) {
    const shared = Math.min(to, start + seconds) - Math.max(from, start);
    if (shared > 0) {
      const word = data.words[kind] ?? "";
      kinds.set(word, (kinds.get(word) ?? 0) + shared);
    }
  }
  const [most] = [...kinds].sort((a, b) => b[1] - a[1]);
  const label = most === undefined ? "" : `while the host: ${most[0]}`;
  return box(root, IDLE, label, IDLE, from, to - from, undefined);
}

function placeOf([, , , , , , , place]: StepRow, data: Measured): Place | undefined {
  return data.places[place];
}

function box(
  parent: StepBox | undefined,
  name: string,
  label: string,
  kind: string,
  start: number,
  seconds: number,
  place: Place | undefined,
  depth = parent === undefined ? 0 : parent.depth + 1,
): StepBox {
  return {
    id: 0,
    parent,
    name,
    label,
    kind,
    start,
    size: seconds,
    depth,
    place,
    children: [],
  };
}

function add(boxes: StepBox[], one: StepBox): StepBox {
  boxes.push(one);
  (one.parent as StepBox | undefined)?.children.push(one);
  return one;
}

/** The class of a box: its colour. */
export function groupOf(one: Box): string {
  const { kind } = one as StepBox;
  return GROUPS.find(({ kinds }) => kinds.includes(kind))?.group ?? (kind === IDLE ? IDLE : "whole");
}

/** The text in a box: of a gap between kernels nothing, of the host's own pieces their kind. */
export function titleOf(one: Box): string {
  const { kind, name, label } = one as StepBox;
  if (kind === "device") {
    return `Device, ${label}`;
  }
  if (one.parent === undefined) {
    return name;
  }
  return kind === "kernel" || kind === "compile" || kind === "eager operator" || label === "" ? name : kind;
}

export function spoken(one: Box, whole: Box): string {
  const { name, label, size } = one;
  return [`${name} ${units.duration(size)}`, `${units.percent(size, whole.size)} of the step`, label]
    .filter((part) => part !== "")
    .join(", ");
}
