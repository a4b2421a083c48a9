/** Modules, or call frames, as boxes of a flame graph: each is as wide as the kernels that it leads to took. */

import type { Place } from "../../protocol";
import * as units from "../../units";
import type { PathTime } from "../results";
import type { Box } from "../time/layout";

const TONES = ["kernels", "inductor", "aot", "dynamo", "eager"];

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
  return boxes.length > 1 ? boxes : [];
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
