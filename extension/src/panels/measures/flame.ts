/** A flame graph as data: which boxes are drawn where, the marks of its ruler, what is found, where keys lead. */

import * as units from "../../units";
import { amount, valueOf, type Box } from "./box";

/** Narrower boxes are not drawn until the user zooms in on what is around them. */
const LEAST_PIXELS = 1.5;

/** The part of the chart that is in sight: that of a box, or any other. */
export interface Span {
  start: number;
  size: number;
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
export function drawnBoxes(boxes: Box[], span: Span, width: number): Drawn[] {
  const scale = span.size > 0 ? width / span.size : 0;
  return boxes.flatMap((box) => {
    const left = Math.max(0, (box.start - span.start) * scale);
    const right = Math.min(width, (box.start + box.size - span.start) * scale);
    const above = covers(box, span) && box.size > span.size * (1 + EPSILON);
    return right - left < LEAST_PIXELS ? [] : [{ box, left, width: right - left, above }];
  });
}

/** Sizes are sums of rounded ones. */
const EPSILON = 1e-9;

function covers(box: Span, { start, size }: Span): boolean {
  const slack = EPSILON * Math.max(1, start + size);
  return box.start <= start + slack && box.start + box.size >= start + size - slack;
}

/** The smallest box around what is in sight: where zooming out leads to. */
export function around(boxes: Box[], span: Span): Box | undefined {
  return boxes
    .filter((box) => covers(box, span) && box.size > span.size * (1 + EPSILON))
    .sort((a, b) => a.size - b.size)[0];
}

/** What is in sight after zooming by a factor towards a box; never outside of the whole. */
export function zoomedBy(span: Span, towards: Span, factor: number, whole: Span): Span {
  const size = Math.min(whole.size, span.size * factor);
  const middle = towards.start + towards.size / 2;
  const start = Math.min(Math.max(whole.start, middle - size / 2), whole.start + whole.size - size);
  return { start, size };
}

/** What is in sight after drawing the pointer from one place of the chart to another, in pixels. */
export function draggedSpan({ start, size }: Span, from: number, to: number, width: number): Span {
  const [left, right] = [Math.max(0, Math.min(from, to)), Math.min(width, Math.max(from, to))];
  return { start: start + (left / width) * size, size: ((right - left) / width) * size };
}

/** A mark of the ruler: how far from the left edge. */
export interface Tick {
  left: number;
  text: string;
}

/** Marks at round numbers, far enough from each other to be read. */
export function ticksOf({ size }: Span, width: number, unit: string): Tick[] {
  if (size <= 0 || width <= 0) {
    return [];
  }
  const least = (size * TICK_PIXELS) / width;
  const power = 10 ** Math.floor(Math.log10(least));
  const steps = unit === "seconds" && least > 10 ? CLOCK_SECONDS : [1, 2, 5, 10].map((factor) => factor * power);
  const step = steps.find((each) => each >= least) ?? 10 * power;
  const count = Math.floor(size / step + EPSILON);
  const ticks = Array.from({ length: count + 1 }, (_, at) => ({
    left: (width * at * step) / size,
    text: at === 0 ? "0" : amount(at * step, unit),
  }));
  return ticks.filter(({ left }, at) => at === 0 || left <= width - TICK_PIXELS / 2);
}

const TICK_PIXELS = 90;
const CLOCK_SECONDS = [15, 30, 60, 120, 300, 600, 1800, 3600];

/** The boxes whose name or words contain a text. */
export function matchesOf(boxes: Box[], wanted: string): Box[] {
  const text = wanted.trim().toLowerCase();
  return text === "" ? [] : boxes.slice(1).filter(({ name, label }) => `${name} ${label}`.toLowerCase().includes(text));
}

/** `3 phases, 1.2 s`: what is inside of another match counts once. */
export function matchText(matches: Box[], wanted: string, noun: [one: string, many: string], unit: string): string {
  if (wanted.trim() === "") {
    return "";
  }
  const all = new Set(matches);
  const outermost = matches.filter(
    (box) =>
      !pathTo(box)
        .slice(1)
        .some((each) => all.has(each)),
  );
  const sum = outermost.reduce((added, box) => added + valueOf(box), 0);
  return matches.length === 0 ? "nothing found" : `${units.count(matches.length, ...noun)}, ${amount(sum, unit)}`;
}

/** The box that a key leads to from the current one, among those that are drawn. */
export function boxAt(key: string, current: Box, boxes: Box[], isDrawn: (box: Box) => boolean): Box | undefined {
  const siblings = (current.parent?.children ?? []).filter(isDrawn);
  const at = siblings.indexOf(current);
  switch (key) {
    case "ArrowUp":
      return current.parent;
    case "ArrowDown":
      // The child that has most.
      return current.children.filter(isDrawn).sort((a, b) => b.size - a.size)[0];
    case "ArrowLeft":
      return siblings[at - 1];
    case "ArrowRight":
      return siblings[at + 1];
    default:
      return key === "Home" ? boxes[0] : undefined;
  }
}

/** A box, then what is around it, the innermost first. */
export function pathTo(box: Box): Box[] {
  const path: Box[] = [];
  for (let each: Box | undefined = box; each !== undefined; each = each.parent) {
    path.push(each);
  }
  return path;
}
