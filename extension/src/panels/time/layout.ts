/** Where the boxes of the flame chart lie: compiles one after the other, the phases of each below it. */

import type { Box } from "../measures/box";
import type { CompileTimes, PhaseRow, Phases } from "../results";

/** All boxes, parents before children. The first box contains all others. */
export function layOut(data: Phases): Box[] {
  const whole = box(undefined, "All compiles", "", "", 0, data.seconds, 0, false);
  const boxes = [whole];
  let at = 0;
  for (const compile of data.compiles) {
    const title = `${compile.id} ${compile.function}`;
    const root = add(boxes, box(whole, title, "", compile.id, at, compile.seconds, compile.seconds, false));
    if (compile.phases !== null) {
      addPhases(boxes, root, compile, data);
    }
    at += compile.seconds;
  }
  boxes.forEach((each, index) => (each.id = index));
  return boxes;
}

function addPhases(boxes: Box[], root: Box, compile: CompileTimes, { names, labels }: Phases): void {
  const made: Box[] = [];
  /** The box that what is inside a phase goes below: its own, or the one around it. */
  const homes: Box[] = [];
  const shifts: number[] = [];
  let end = root.start;
  const rows = compile.phases ?? [];
  const passesOn = wrappers(rows, labels);
  for (const [name, parent, start, seconds, own, track] of rows) {
    const above = parent < 0 ? root : (homes[parent] ?? root);
    // The backward is compiled at its first call, which may be long after the forward: roots follow each other.
    const shift = parent < 0 ? end - start : (shifts[parent] ?? 0);
    if (parent < 0 && track === 0) {
      end += seconds;
      root.own -= seconds;
    }
    shifts.push(shift);
    if (passesOn.has(homes.length)) {
      homes.push(above);
      continue;
    }
    const beside = track !== 0;
    const one = box(above, names[name] ?? "", labels[name] ?? "", compile.id, start + shift, seconds, own, beside);
    homes.push(add(boxes, one));
    made.push(one);
  }
  root.own = Math.max(0, root.own);
  stack(made.filter((one) => one.beside));
}

/**
 * Only one of several phases that do nothing but call another one has a box, else rows of the same width would push
 * down what the time was spent on: the first that has words for what it is.
 */
function wrappers(rows: PhaseRow[], labels: string[]): Set<number> {
  const inside = new Map<number, number[]>();
  rows.forEach(([, parent], index) => inside.set(parent, [...(inside.get(parent) ?? []), index]));
  const found = new Set<number>();
  /** Whether the box for a phase has words: its own, or those of the one that it was left out for. */
  const hasWords = rows.map(([name]) => (labels[name] ?? "") !== "");
  rows.forEach(([, , , seconds], index) => {
    const [only, another] = inside.get(index) ?? [];
    const row = only === undefined ? undefined : rows[only];
    if (only !== undefined && another === undefined && row !== undefined && row[5] === 0 && row[3] >= 0.995 * seconds) {
      const outer = hasWords[index] === true || hasWords[only] !== true;
      found.add(outer ? only : index);
      hasWords[only] = hasWords[only] === true || hasWords[index] === true;
    }
  });
  return found;
}

/** What ran in other threads overlaps: each goes to the first row below its parent that is free. */
function stack(boxes: Box[]): void {
  const rows = new Map<Box, number[]>();
  for (const one of boxes) {
    let top = one.parent;
    while (top?.beside === true) {
      top = top.parent;
    }
    if (top === undefined) {
      continue;
    }
    const ends = rows.get(top) ?? [];
    rows.set(top, ends);
    let row = ends.findIndex((end) => end <= one.start + 1e-9);
    row = row < 0 ? ends.length : row;
    ends[row] = one.start + one.seconds;
    one.depth = top.depth + 1 + row;
  }
}

function box(
  parent: Box | undefined,
  name: string,
  label: string,
  compile: string,
  start: number,
  seconds: number,
  own: number,
  beside: boolean,
): Box {
  return {
    id: 0,
    parent,
    name,
    label,
    compile,
    start,
    seconds,
    own,
    depth: parent === undefined ? 0 : parent.depth + 1,
    beside,
    children: [],
  };
}

function add(boxes: Box[], one: Box): Box {
  boxes.push(one);
  one.parent?.children.push(one);
  return one;
}
