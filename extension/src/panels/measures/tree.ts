/** Measures on modules, or on call frames, as rows of a table and as boxes of a flame graph, as wide as the first measure. */

import type { Place } from "../../protocol";
import * as units from "../../units";
import type { MeasureTitle, MeasureTree } from "../results";
import type { Box } from "./box";

const TONES = ["kernels", "inductor", "aot", "dynamo", "eager"];

/** At first the tree is open down to so many parts, those with most of the first measure: the rows in the terminal. */
const MOST_OPENED = 20;

/** Measures that have another title than their name. */
const TITLES: Record<string, string> = { bound: "Possible", step: "Time of a Step", "at the peak": "At the Peak" };

/** A box, with what else is known about it; its seconds are the first measure, whatever its unit. */
export interface PathBox extends Box {
  place: Place | undefined;
  values: number[];
  children: PathBox[];
}

/** A row of a table: what it is about, and its numbers as text. */
export interface Row {
  /** A place that leads to an editor; without one the name is text. */
  place: Place | undefined;
  name: string;
  /** Below the name: kernels of a line, lines of a kernel. */
  detail: string;
  /** The share of the whole, 0 to 1. */
  share: number;
  cells: string[];
}

/** A part in the table. */
export interface PathRow extends Row {
  id: number;
  depth: number;
  /** Whether what is inside is shown; undefined if there is nothing inside. */
  isOpen: boolean | undefined;
}

/** Of what the first measure is a share. */
export interface Share {
  title: string;
  whole: number;
}

/** All boxes, parents before children. The first box contains all others. Empty if there is no tree. */
export function pathBoxes({ rows }: MeasureTree): PathBox[] {
  const boxes: PathBox[] = [];
  /** Where the next box inside each box begins. */
  const ends: number[] = [];
  rows.forEach(({ name, kind, place, parent, own, whole }, id) => {
    const above = boxes[parent];
    const start = ends[parent] ?? 0;
    const seconds = whole[0] ?? 0;
    ends[parent] = start + seconds;
    ends[id] = start;
    const box: PathBox = {
      id,
      parent: above,
      name,
      label: kind === name ? "" : kind,
      compile: "",
      start,
      seconds,
      own: own[0] ?? 0,
      depth: above === undefined ? 0 : above.depth + 1,
      beside: false,
      place: place.uri === "" ? undefined : place,
      values: whole,
      children: [],
    };
    above?.children.push(box);
    boxes.push(box);
  });
  return boxes.length > 1 && boxes[0]?.values.some((value) => value > 0) === true ? boxes : [];
}

/** The boxes that are open at first: those around the parts with most of the first measure. */
export function openAtFirst(boxes: PathBox[]): Set<number> {
  const most = [...boxes].sort(byMost).slice(0, MOST_OPENED);
  return new Set(most.flatMap(({ parent }) => parent?.id ?? []));
}

/** Titles of the columns of numbers; with a share, that and a part's own number come after the first measure. */
export function treeColumns({ measures }: MeasureTree, share?: Share): string[] {
  const [first = "", ...others] = measures.map(titleOfMeasure);
  return [first, ...(share === undefined ? [] : [share.title, "Own"]), ...others];
}

/** The rows that are shown: what is inside of a box that is open, that with most of the first measure first. */
export function pathRows(tree: MeasureTree, boxes: PathBox[], open: Set<number>, share?: Share): PathRow[] {
  const rows: PathRow[] = [];
  const add = (box: PathBox): void => {
    const inside = box.children.length > 0;
    const [first = "", ...others] = tree.measures.map((measure, at) => text(box.values[at] ?? 0, measure));
    const beside =
      share === undefined
        ? []
        : [units.percent(box.seconds, share.whole), text(box.own, tree.measures[0] as MeasureTitle)];
    rows.push({
      id: box.id,
      depth: box.depth,
      isOpen: inside ? open.has(box.id) : undefined,
      place: box.place,
      name: box.name,
      detail: box.label,
      share: share === undefined || share.whole <= 0 ? 0 : Math.min(1, box.seconds / share.whole),
      cells: [first, ...beside, ...others],
    });
    if (inside && open.has(box.id)) {
      [...box.children].sort(byMost).forEach(add);
    }
  };
  boxes.slice(0, 1).forEach(add);
  return rows;
}

function titleOfMeasure({ name }: MeasureTitle): string {
  return TITLES[name] ?? name.replace(/\b\w/g, (letter) => letter.toUpperCase());
}

/** What has most of the first measure is first; of a change, what changed most. */
function byMost(a: PathBox, b: PathBox): number {
  return Math.abs(b.seconds) - Math.abs(a.seconds);
}

/** A number with its unit; nothing is left empty. */
function text(value: number, { unit }: MeasureTitle): string {
  if (value === 0) {
    return "";
  }
  const size = Math.abs(value);
  const shown = unit === "seconds" ? units.duration(size) : unit === "bytes" ? units.size(size) : String(size);
  return value < 0 ? `−${shown}` : shown;
}

/** The class of a box, its colour: modules of one class, and frames of one function, have the same. */
export function toneOf({ name, label, parent }: Box): string {
  if (parent === undefined) {
    return "whole";
  }
  const sum = [...(label === "" ? name : label)].reduce((hash, each) => (hash * 31 + each.charCodeAt(0)) % 65521, 7);
  return TONES[sum % TONES.length] ?? "";
}

export function pathTitle({ name, label }: Box): string {
  return label === "" ? name : `${name} ${label}`;
}

/** The numbers of a box of a profile: its time, its own part, the least it could take, and the bytes that it moves. */
export function pathFacts(box: Box, whole: number): string[] {
  const { seconds, own, values } = box as PathBox;
  const [, possible = 0, bytes = 0] = values;
  return [
    `${units.duration(seconds)} ${units.percent(seconds, whole)} of the kernels`,
    own > 0 && own < seconds ? `own ${units.duration(own)}` : "",
    possible > 0 ? `possible ${units.duration(possible)}` : "",
    bytes > 0 ? `moved ${units.size(bytes)}` : "",
  ].filter((fact) => fact !== "");
}

export function spokenPath(box: Box, whole: number): string {
  return [pathTitle(box), ...pathFacts(box, whole)].join(", ");
}
