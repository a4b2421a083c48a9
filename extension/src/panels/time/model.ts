/** The flame chart of compile times as data: which boxes are drawn where, what is said of them, where keys lead. */

import * as units from "../../units";
import { capital } from "../text";
import type { Box } from "./layout";

/** Narrower boxes are not drawn until the user zooms in on what is around them. */
const LEAST_PIXELS = 1.5;

/** PyTorch's names of what belongs to which part of the compiler, the innermost part last. */
export const PARTS: { part: string; title: string; pattern: RegExp }[] = [
  { part: "dynamo", title: "Dynamo", pattern: /^(dynamo|bytecode|build_guards|compile_attempt|entire_frame|gc$)/ },
  { part: "aot", title: "AOTAutograd", pattern: /^(create_aot|aot_|min_cut|_recursive_joint|entire_backward)/ },
  {
    part: "inductor",
    title: "Inductor",
    pattern: /^(compile_fx|inductor|fx_codegen|GraphLowering|Scheduler|_recursive_p|code_gen|PythonWrapper)/,
  },
  { part: "kernels", title: "kernels", pattern: /^(compile_file|async_compile|PyCodeCache|triton|Triton)/ },
];

/** A box that is drawn, in pixels of the chart. */
export interface Drawn {
  box: Box;
  left: number;
  width: number;
  /** It is around the box that fills the chart. */
  above: boolean;
}

/** The boxes wide enough to be seen, where `whole` fills the width of the chart. */
export function drawnBoxes(boxes: Box[], whole: Box, width: number): Drawn[] {
  const scale = whole.seconds > 0 ? width / whole.seconds : 0;
  const above = new Set(pathTo(whole));
  return boxes.flatMap((box) => {
    const left = above.has(box) ? 0 : (box.start - whole.start) * scale;
    const wide = above.has(box) ? width : box.seconds * scale;
    const isOutside = left + wide < 0 || left > width || !(above.has(box) || pathTo(box).includes(whole));
    if (wide < LEAST_PIXELS || isOutside) {
      return [];
    }
    const from = Math.max(0, left);
    return [{ box, left: from, width: Math.min(wide, width - from), above: above.has(box) && box !== whole }];
  });
}

/** The part of the compiler; what has no part itself belongs to that of what is around it. */
export function partOf(box: Box): string {
  for (const { name, depth } of pathTo(box)) {
    const found = depth > 1 ? PARTS.find(({ pattern }) => pattern.test(name)) : undefined;
    if (found !== undefined) {
      return found.part;
    }
  }
  return box.depth === 1 ? "compile" : "whole";
}

export function titleOf({ name, label }: Box): string {
  return label === "" ? name : capital(label);
}

/** What a screen reader says of a box. */
export function spoken(box: Box, all: number): string {
  const title = titleOf(box);
  const name = title === box.name ? "" : `, ${box.name}`;
  return `${title} ${units.duration(box.seconds)}, ${units.percent(box.seconds, all)} of all${name}`;
}

/** What is said below the chart, after name and time. */
export function remarks(box: Box): string[] {
  return [
    ...(box.parent === undefined || box.beside
      ? []
      : [`${units.percent(box.seconds, box.parent.seconds)} of ${box.parent.name}`]),
    ...(box.children.length > 0 && box.own > 0 ? [`${units.duration(box.own)} self`] : []),
    ...(box.beside ? ["in another thread"] : []),
  ];
}

/** The box that a key leads to from the current one, among those that are drawn. */
export function boxAt(key: string, current: Box, boxes: Box[], isDrawn: (box: Box) => boolean): Box | undefined {
  const siblings = (current.parent?.children ?? []).filter(isDrawn);
  const at = siblings.indexOf(current);
  switch (key) {
    case "ArrowUp":
      return current.parent;
    case "ArrowDown":
      // The child that took most: where the time went.
      return current.children.filter(isDrawn).sort((a, b) => b.seconds - a.seconds)[0];
    case "ArrowLeft":
      return siblings[at - 1];
    case "ArrowRight":
      return siblings[at + 1];
    default:
      return key === "Home" ? boxes[0] : undefined;
  }
}

/** A row of the table: phases of one name at one place added up. */
export interface Sum {
  name: string;
  label: string;
  depth: number;
  seconds: number;
  own: number;
  count: number;
}

interface Node extends Sum {
  inside: Map<string, Node>;
}

/** The same as rows, a phase before what is inside it, the longest first. */
export function sums(boxes: Box[]): Sum[] {
  const root = new Map<string, Node>();
  const nodes = new Map<Box, Node>();
  for (const box of boxes.slice(1)) {
    const parent = box.parent === undefined ? undefined : nodes.get(box.parent);
    const siblings = parent?.inside ?? root;
    const sum = siblings.get(box.name) ?? {
      name: box.name,
      label: box.label,
      depth: parent === undefined ? 0 : parent.depth + 1,
      seconds: 0,
      own: 0,
      count: 0,
      inside: new Map<string, Node>(),
    };
    sum.seconds += box.seconds;
    sum.own += box.own;
    sum.count += 1;
    siblings.set(box.name, sum);
    nodes.set(box, sum);
  }
  const rows = (siblings: Map<string, Node>): Sum[] =>
    [...siblings.values()].sort((a, b) => b.seconds - a.seconds).flatMap((sum) => [sum, ...rows(sum.inside)]);
  return rows(root);
}

/** A box, then what is around it, the innermost first. */
function pathTo(box: Box): Box[] {
  const path: Box[] = [];
  for (let each: Box | undefined = box; each !== undefined; each = each.parent) {
    path.push(each);
  }
  return path;
}
