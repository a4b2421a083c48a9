/** The flame chart of compile times as data: which boxes are drawn where, what is said of them, where keys lead. */

import * as units from "../../units";
import { capital } from "../text";
import type { Box } from "../measures/box";

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

/** The seconds of the chart that are in sight: those of a box, or any others. */
export interface Span {
  start: number;
  seconds: number;
}

/** A box that is drawn, in pixels of the chart. */
export interface Drawn {
  box: Box;
  left: number;
  width: number;
  /** It is around what is in sight, and longer. */
  above: boolean;
}

/** The boxes wide enough to be seen, where `span` fills the width of the chart. */
export function drawnBoxes(boxes: Box[], span: Span, width: number, withThreads = true): Drawn[] {
  const scale = span.seconds > 0 ? width / span.seconds : 0;
  return boxes.flatMap((box) => {
    const left = Math.max(0, (box.start - span.start) * scale);
    const right = Math.min(width, (box.start + box.seconds - span.start) * scale);
    const isHidden = box.beside && !withThreads;
    const above = covers(box, span) && box.seconds > span.seconds * (1 + EPSILON);
    return isHidden || right - left < LEAST_PIXELS ? [] : [{ box, left, width: right - left, above }];
  });
}

/** Seconds are sums of rounded ones. */
const EPSILON = 1e-9;

function covers(box: Span, { start, seconds }: Span): boolean {
  const slack = EPSILON * Math.max(1, start + seconds);
  return box.start <= start + slack && box.start + box.seconds >= start + seconds - slack;
}

/** The smallest box around what is in sight: where zooming out leads to. */
export function around(boxes: Box[], span: Span): Box | undefined {
  return boxes
    .filter((box) => covers(box, span) && box.seconds > span.seconds * (1 + EPSILON))
    .sort((a, b) => a.seconds - b.seconds)[0];
}

/** What is in sight after zooming by a factor towards a box; never outside of the whole. */
export function zoomedBy(span: Span, towards: Span, factor: number, whole: Span): Span {
  const seconds = Math.min(whole.seconds, span.seconds * factor);
  const middle = towards.start + towards.seconds / 2;
  const start = Math.min(Math.max(whole.start, middle - seconds / 2), whole.start + whole.seconds - seconds);
  return { start, seconds };
}

/** What is in sight after drawing the pointer from one place of the chart to another, in pixels. */
export function draggedSpan({ start, seconds }: Span, from: number, to: number, width: number): Span {
  const [left, right] = [Math.max(0, Math.min(from, to)), Math.min(width, Math.max(from, to))];
  return { start: start + (left / width) * seconds, seconds: ((right - left) / width) * seconds };
}

/** A mark of the ruler: seconds from the left edge. */
export interface Tick {
  left: number;
  text: string;
}

/** Marks at round times, far enough from each other to be read. */
export function ticksOf({ seconds }: Span, width: number): Tick[] {
  if (seconds <= 0 || width <= 0) {
    return [];
  }
  const least = (seconds * TICK_PIXELS) / width;
  const power = 10 ** Math.floor(Math.log10(least));
  const steps = least > 10 ? CLOCK_SECONDS : [1, 2, 5, 10].map((factor) => factor * power);
  const step = steps.find((each) => each >= least) ?? 10 * power;
  const count = Math.floor(seconds / step + EPSILON);
  const ticks = Array.from({ length: count + 1 }, (_, at) => ({
    left: (width * at * step) / seconds,
    text: at === 0 ? "0" : units.duration(at * step),
  }));
  return ticks.filter(({ left }, at) => at === 0 || left <= width - TICK_PIXELS / 2);
}

const TICK_PIXELS = 90;
const CLOCK_SECONDS = [15, 30, 60, 120, 300, 600, 1800, 3600];

/** The boxes whose name, words or compile contain a text. */
export function matchesOf(boxes: Box[], wanted: string): Box[] {
  const text = wanted.trim().toLowerCase();
  return text === "" ? [] : boxes.slice(1).filter(({ name, label }) => `${name} ${label}`.toLowerCase().includes(text));
}

/** `3 phases, 1.2 s`: what is inside of another match counts once, and what ran beside does not. */
export function matchText(
  matches: Box[],
  wanted: string,
  noun: [one: string, many: string] = ["phase", "phases"],
): string {
  if (wanted.trim() === "") {
    return "";
  }
  const all = new Set(matches);
  const outermost = matches.filter(
    (box) =>
      !box.beside &&
      !pathTo(box)
        .slice(1)
        .some((each) => all.has(each)),
  );
  const seconds = outermost.reduce((sum, box) => sum + box.seconds, 0);
  return matches.length === 0 ? "nothing found" : `${units.count(matches.length, ...noun)}, ${units.duration(seconds)}`;
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

/** A box, then what is around it, the innermost first. */
function pathTo(box: Box): Box[] {
  const path: Box[] = [];
  for (let each: Box | undefined = box; each !== undefined; each = each.parent) {
    path.push(each);
  }
  return path;
}
