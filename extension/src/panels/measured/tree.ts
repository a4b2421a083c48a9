/** Modules, or call frames, as a tree of rows and as boxes of a flame graph, as wide as the kernels that each leads to took. */

import type { Place } from "../../protocol";
import * as units from "../../units";
import type { PathTime } from "../results";
import type { Box } from "../time/layout";
import type { Row } from "./model";

const TONES = ["kernels", "inductor", "aot", "dynamo", "eager"];

/** Titles of the columns of numbers, as in the terminal's table. */
export const PATH_COLUMNS = ["Time", "% of step", "Own", "Possible", "Moved"];
/** At first the tree is open down to so many parts, those with most time: the number of rows in the terminal. */
const MOST_OPENED = 20;

/** A box, with what else is known about it. */
export interface PathBox extends Box {
  place: Place | undefined;
  possible: number;
  bytes: number;
  children: PathBox[];
}

/** All boxes, parents before children; the first one is the whole step. None if the profile has no tree. */
export function pathBoxes(nodes: PathTime[]): PathBox[] {
  const boxes: PathBox[] = [];
  /** Where the next box inside each box begins. */
  const ends: number[] = [];
  nodes.forEach(({ name, kind, place, parent, own, seconds, possible, bytes }, id) => {
    const above = boxes[parent];
    const start = ends[parent] ?? 0;
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
      own,
      depth: above === undefined ? 0 : above.depth + 1,
      beside: false,
      place: place.uri === "" ? undefined : place,
      possible,
      bytes,
      children: [],
    };
    above?.children.push(box);
    boxes.push(box);
  });
  return boxes.length > 1 && (boxes[0]?.seconds ?? 0) > 0 ? boxes : [];
}

/** A part in the table. */
export interface PathRow extends Row {
  id: number;
  depth: number;
  /** Whether what is inside is shown; undefined if there is nothing inside. */
  isOpen: boolean | undefined;
}

/** The boxes that are open at first: those around the parts with most time. */
export function openAtFirst(boxes: PathBox[]): Set<number> {
  const most = [...boxes].sort((a, b) => b.seconds - a.seconds).slice(0, MOST_OPENED);
  return new Set(most.flatMap(({ parent }) => parent?.id ?? []));
}

/** The rows that are shown: what is inside of a box that is open, that with most time first. */
export function pathRows(boxes: PathBox[], open: Set<number>, step: number): PathRow[] {
  const rows: PathRow[] = [];
  const add = (box: PathBox): void => {
    const inside = box.children.length > 0;
    rows.push({
      id: box.id,
      depth: box.depth,
      isOpen: inside ? open.has(box.id) : undefined,
      place: box.place,
      name: box.name,
      detail: box.label,
      share: step > 0 ? Math.min(1, box.seconds / step) : 0,
      cells: [
        units.duration(box.seconds),
        units.percent(box.seconds, step),
        box.own > 0 ? units.duration(box.own) : "",
        box.possible > 0 ? units.duration(box.possible) : "",
        box.bytes > 0 ? units.size(box.bytes) : "",
      ],
    });
    if (inside && open.has(box.id)) {
      [...box.children].sort((a, b) => b.seconds - a.seconds).forEach(add);
    }
  };
  boxes.slice(0, 1).forEach(add);
  return rows;
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

/** The numbers of a box: its time, its own part, the least it could take, and the bytes that it moves. */
export function pathFacts(box: Box, whole: number): string[] {
  const { seconds, own, possible, bytes } = box as PathBox;
  return [
    `${units.duration(seconds)} ${units.percent(seconds, whole)} of the kernels`,
    own > 0 && own < seconds ? `own ${units.duration(own)}` : "",
    possible > 0 ? `possible ${units.duration(possible)}` : "",
    bytes > 0 ? `moved ${units.size(bytes)}` : "",
  ].filter((text) => text !== "");
}

export function spokenPath(box: Box, whole: number): string {
  return [pathTitle(box), ...pathFacts(box, whole)].join(", ");
}
