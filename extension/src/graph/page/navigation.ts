/** Where the arrow keys lead: along the wires, to neighbours, into clusters and out of them. */

import type { Box } from "../layout/scene";

export type Direction = "up" | "down" | "left" | "right";

/** Up and down follow the wires; left and right go to the neighbour in the same row. Undefined: no neighbour that way. */
export function neighbour(from: Box, direction: Direction): Box | undefined {
  const { parent } = from;
  if (parent === undefined) {
    return from.children[0];
  }
  if (direction === "up" || direction === "down") {
    const linked = parent.wires.flatMap((wire) =>
      direction === "up" ? (wire.to === from ? [wire.from] : []) : wire.from === from ? [wire.to] : [],
    );
    // Where no wire leads on inside the cluster, those of the cluster do.
    return nearest(from, linked) ?? (parent.parent === undefined ? undefined : neighbour(parent, direction));
  }
  const sign = direction === "left" ? -1 : 1;
  const row = parent.children.filter(
    (box) =>
      box.y < from.y + from.height && from.y < box.y + box.height && Math.sign(middle(box).x - middle(from).x) === sign,
  );
  return nearest(from, row);
}

/** The first thing inside an open cluster: nothing uses what comes before it. */
export function into(box: Box): Box | undefined {
  return edge(box.children, "first");
}

/** The first or the last of the boxes beside a box. */
export function edgeOf(box: Box, which: "first" | "last"): Box | undefined {
  return edge(box.parent?.children ?? box.children, which);
}

function edge(boxes: readonly Box[], which: "first" | "last"): Box | undefined {
  let best = boxes[0];
  for (const box of boxes) {
    if (best === undefined || (which === "first" ? box.y < best.y : box.y + box.height > best.y + best.height)) {
      best = box;
    }
  }
  return best;
}

function nearest(from: Box, boxes: Box[]): Box | undefined {
  let best: Box | undefined;
  for (const box of boxes) {
    if (best === undefined || distance(from, box) < distance(from, best)) {
      best = box;
    }
  }
  return best;
}

function middle({ x, y, width, height }: Box): { x: number; y: number } {
  return { x: x + width / 2, y: y + height / 2 };
}

function distance(left: Box, right: Box): number {
  return Math.hypot(middle(left).x - middle(right).x, middle(left).y - middle(right).y);
}
