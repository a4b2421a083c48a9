/** Measures on modules, phases or call frames, as rows of a table and as boxes of a flame graph, as wide as the first measure. */

import type { Place } from "../../protocol";
import * as units from "../../units";
import type { Measure, MeasureTree } from "../results";
import { capital } from "../text";
import { amount, type Box } from "./box";

const TONES = ["kernels", "inductor", "aot", "dynamo", "eager"];

/** At first the tree is open down to so many parts, those with most of the first measure: the rows in the terminal. */
const MOST_OPENED = 20;

/** Measures that have another title than their name. */
const TITLES: Record<string, string> = {
  bound: "Possible",
  "time in kernels": "Time in Kernels",
  "at the peak": "At the Peak",
};

/** A box, with what else is known about it. A box of a change is as wide as all that changed in it, up and down. */
export interface PathBox extends Box {
  /** The names of all that it stands for, the outermost first. */
  names: string[];
  place: Place | undefined;
  /** The measures; `own` is the first one without what is inside. */
  values: number[];
  value: number;
  own: number;
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

/** Of what the first measure is a share; the title is that of its column: `% of step`. */
export interface Share {
  title: string;
  whole: number;
}

/** All boxes, parents before children. The first box contains all others. Empty if there is no tree. */
export function pathBoxes({ rows, isChange }: MeasureTree): PathBox[] {
  const sizes = rows.map(({ own, whole }) => Math.abs((isChange ? own : whole)[0] ?? 0));
  if (isChange) {
    rows.forEach((_, fromStart) => {
      const at = rows.length - 1 - fromStart;
      const parent = rows[at]?.parent ?? -1;
      if (parent >= 0) {
        sizes[parent] = (sizes[parent] ?? 0) + (sizes[at] ?? 0);
      }
    });
  }
  const boxes: PathBox[] = [];
  /** Where the next box inside each box begins. */
  const ends: number[] = [];
  rows.forEach(({ name, kind, place, parent, own, whole }, id) => {
    const above = boxes[parent];
    const start = ends[parent] ?? 0;
    const size = sizes[id] ?? 0;
    ends[parent] = start + size;
    ends[id] = start;
    const box: PathBox = {
      id,
      parent: above,
      name,
      names: [name],
      label: kind === name ? "" : kind,
      start,
      size,
      value: whole[0] ?? 0,
      own: own[0] ?? 0,
      depth: above === undefined ? 0 : above.depth + 1,
      place: place.uri === "" ? undefined : place,
      values: whole,
      children: [],
    };
    above?.children.push(box);
    boxes.push(box);
  });
  return boxes.length > 1 && boxes[0]?.values.some((value) => value !== 0) === true ? boxes : [];
}

/**
 * The boxes of a flame graph. Boxes that do nothing but hold each other are drawn as one, with the names of all: rows of
 * the same width would push down what the first measure was spent on.
 */
export function flameBoxes(tree: MeasureTree): PathBox[] {
  const drawn = new Map<Box, PathBox>();
  const boxes: PathBox[] = [];
  for (const box of pathBoxes(tree)) {
    const around = box.parent && drawn.get(box.parent);
    if (around !== undefined && around.depth > 1 && isAllOf(box, box.parent)) {
      around.names.push(box.name);
      around.name = around.names.join(" › ");
      around.label ||= box.label;
      around.own = box.own;
      drawn.set(box, around);
    } else {
      const depth = around === undefined ? 0 : around.depth + 1;
      const copy = { ...box, id: boxes.length, parent: around, names: [box.name], depth, children: [] };
      around?.children.push(copy);
      boxes.push(copy);
      drawn.set(box, copy);
    }
  }
  return boxes;
}

function isAllOf({ size }: Box, around: Box | undefined): boolean {
  return around?.children.length === 1 && size > 0 && size >= 0.995 * around.size;
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
    const [first = "", ...others] = tree.measures.map(({ unit }, at) => cell(box.values[at] ?? 0, unit));
    const beside =
      share === undefined ? [] : [units.percent(box.value, share.whole), cell(box.own, tree.measures[0]?.unit ?? "")];
    rows.push({
      id: box.id,
      depth: box.depth,
      isOpen: inside ? open.has(box.id) : undefined,
      place: box.place,
      name: box.name,
      detail: box.label,
      share: share === undefined || share.whole <= 0 ? 0 : Math.min(1, box.value / share.whole),
      cells: [first, ...beside, ...others],
    });
    if (inside && open.has(box.id)) {
      [...box.children].sort(byMost).forEach(add);
    }
  };
  boxes.slice(0, 1).forEach(add);
  return rows;
}

function titleOfMeasure({ name }: Measure): string {
  return TITLES[name] ?? name.replace(/\b\w/g, (letter) => letter.toUpperCase());
}

/** What has most of the first measure is first; of a change, what changed most. */
function byMost(a: PathBox, b: PathBox): number {
  return Math.abs(b.value) - Math.abs(a.value);
}

/** Nothing is left empty. */
function cell(value: number, unit: string): string {
  return value === 0 ? "" : amount(value, unit);
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

/** The class of a box of a change, its colour. */
export function signOf(box: Box): string {
  const { value } = box as PathBox;
  return value > 0 ? "more" : value < 0 ? "less" : "whole";
}

/** A phase has words in place of its name; the line below the chart has its name, too. */
export function phaseTitle({ name, label }: Box): string {
  return label === "" ? name : capital(label);
}

/** The numbers of a box, as in the table: the first measure and its share, its own part, and the other measures. */
export function pathFacts({ measures, isChange }: MeasureTree, box: Box, share?: Share): string[] {
  const { value, own, values, children } = box as PathBox;
  const [first, ...others] = measures;
  const unit = first?.unit ?? "";
  const part = share === undefined ? "" : ` ${units.percent(value, share.whole)}${share.title.slice(1).toLowerCase()}`;
  return [
    `${isChange && value > 0 ? "+" : ""}${amount(value, unit)}${part}`,
    children.length > 0 && own !== 0 ? `own ${amount(own, unit)}` : "",
    ...others.map((measure, at) => {
      const number = values[at + 1] ?? 0;
      return number === 0 ? "" : `${titleOfMeasure(measure).toLowerCase()} ${amount(number, measure.unit)}`;
    }),
  ].filter((fact) => fact !== "");
}
