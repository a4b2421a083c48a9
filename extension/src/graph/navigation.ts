/** Which node the arrow keys lead to. */

import type { DrawnNode } from "./picture";

export type Direction = "up" | "down" | "left" | "right";

/** Up and down follow the edges; left and right go to the neighbour in the same row. Undefined: nothing that way. */
export function neighbour(from: DrawnNode, direction: Direction, nodes: Map<string, DrawnNode>): DrawnNode | undefined {
  if (direction === "up" || direction === "down") {
    const linked = (direction === "up" ? from.before : from.after)
      .map((id) => nodes.get(id))
      .filter((node) => node !== undefined);
    return nearest(from, linked);
  }
  const sign = direction === "left" ? -1 : 1;
  const row = [...nodes.values()].filter(
    (node) => Math.abs(node.y - from.y) < (node.height + from.height) / 2 && Math.sign(node.x - from.x) === sign,
  );
  return nearest(from, row);
}

function nearest(from: DrawnNode, nodes: DrawnNode[]): DrawnNode | undefined {
  let best: DrawnNode | undefined;
  for (const node of nodes) {
    if (best === undefined || distance(from, node) < distance(from, best)) {
      best = node;
    }
  }
  return best;
}

function distance(left: DrawnNode, right: DrawnNode): number {
  return Math.hypot(left.x - right.x, left.y - right.y);
}
