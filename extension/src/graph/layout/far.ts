/** What a box has to do with boxes in other clusters, to which no wire of the picture leads. */

import type { Forest } from "../model/clusters";
import type { Model } from "../model/model";
import { boxOf, type Box, type Scene } from "./scene";

const MOST_FAR = 60;
/** Only the first nodes of a closed cluster with more than this are looked at. */
const MOST_NODES = 2000;

export interface Far {
  box: Box;
  /** `apart`: Inductor did not fuse the two. */
  kind: "input" | "user" | "apart";
}

export function farFrom(box: Box, scene: Scene | undefined, forest: Forest, model: Model): Far[] {
  if (scene === undefined || box.isOpen) {
    return [];
  }
  const found = new Map<Box, Far["kind"]>();
  const add = (node: number, kind: Far["kind"]): void => {
    const there = boxOf(scene, forest, node);
    const isWired = kind !== "apart" && there?.parent === box.parent;
    if (there?.parent !== undefined && there !== box && !isWired && !found.has(there) && found.size < MOST_FAR) {
      found.set(there, kind);
    }
  };
  const nodes = box.cluster === undefined ? [box.item] : forest.order.subarray(box.cluster.first, box.cluster.last);
  for (const node of nodes.slice(0, MOST_NODES)) {
    model.inputs(node).forEach((other) => add(other, "input"));
    model.users(node).forEach((other) => add(other, "user"));
  }
  if (box.cluster === undefined) {
    for (const { first, second, fused } of model.decisions(box.item)) {
      if (!fused) {
        (first.includes(box.item) ? second : first).forEach((other) => add(other, "apart"));
      }
    }
  }
  return [...found].map(([there, kind]) => ({ box: there, kind }));
}
