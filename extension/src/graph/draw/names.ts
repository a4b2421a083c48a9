/** The names of clusters where the picture is small: letters of one size over it, wherever there is room for them. */

import type { Labels } from "./labels";
import type { Pen } from "./pens";
import type { Box } from "../layout/scene";
import type { Theme } from "./theme";

/** Names of modules are never smaller than this. */
export const NAME_PIXELS = 10;
/** A name that is longer than its box is wide may go beyond it, up to here; with its class twice as far. No class
crosses the edge of a box around its own: it is shortened there, or left out where little of it would be seen. */
const BEYOND_PIXELS = 130;
const LEAST_CLASS_PIXELS = 40;
const LINES_TRIED = 2;

interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The right edge of the narrowest box around another one. */
function edgeAround(box: Place, boxes: readonly Place[]): number {
  const around = boxes.filter(
    (other) =>
      other !== box &&
      other.x <= box.x &&
      other.y <= box.y &&
      other.x + other.width >= box.x + box.width &&
      other.y + other.height >= box.y + box.height,
  );
  return Math.min(...around.map((other) => other.x + other.width));
}

function overlap(left: Place, right: Place): boolean {
  const isBeside = left.x >= right.x + right.width || left.x + left.width <= right.x;
  return !isBeside && left.y < right.y + right.height && left.y + left.height > right.y;
}

/** The names of clusters whose own letters would be too small, over the picture: outer ones first, where there is room. */
export function drawNames(pen: Pen, boxes: readonly Box[], labels: Labels, theme: Theme, scale: number): void {
  const [size, line] = [NAME_PIXELS / scale, (NAME_PIXELS + 3) / scale];
  const taken: Place[] = [];
  const isFree = (place: Place): boolean => taken.every((other) => other === place || !overlap(place, other));
  const placed = boxes.flatMap((box) => {
    const { title, sub } = labels.of(box.item);
    const name = labels.within(title, Math.max(box.width - 8 / scale, BEYOND_PIXELS / scale), size);
    const width = labels.widthIn(name, size) + 4 / scale;
    const place = { x: box.x + 2 / scale, y: box.y + 1 / scale, width, height: line };
    // What another name covers is in one of the next lines.
    for (let moved = 0; moved < LINES_TRIED && !isFree(place); moved += 1) {
      place.y += line;
    }
    if (!isFree(place)) {
      return [];
    }
    taken.push(place);
    return [{ place, name, sub: name === title ? sub : "", edge: edgeAround(box, boxes) }];
  });
  for (const { place, name, sub, edge } of placed) {
    const [, whole = ""] = /^((?!\d+ nodes?$).*?)(?: · |$)/.exec(sub) ?? [];
    const start = place.width - 4 / scale + size / 2;
    const room = edge - place.x - start - 4 / scale;
    const short = labels.within(
      whole,
      Math.min(Math.max(room, LEAST_CLASS_PIXELS / scale), (2 * BEYOND_PIXELS) / scale),
      size,
    );
    const kind = [whole, whole.replace(/, call \d+$/, ""), short].find((text) => {
      const width = start + labels.widthIn(text, size) + 4 / scale;
      const isInside = place.x + width <= edge && width * scale <= BEYOND_PIXELS * 2;
      return text !== "" && isInside && isFree(Object.assign(place, { width }));
    });
    place.width = kind === undefined ? start - size / 2 + 4 / scale : place.width;
    const [x, y] = [place.x + 2 / scale, place.y + 0.8 * line];
    pen.rect(place.x, place.y, place.width, place.height, 2 / scale, { fill: theme.cluster });
    pen.text(name, x, y, { size, colour: theme.ink, font: theme.sans, bold: true });
    if (kind !== undefined) {
      pen.text(kind, x + start, y, { size, colour: theme.muted, font: theme.sans });
    }
  }
}
