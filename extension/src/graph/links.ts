/** The edges that are drawn inside a cluster. */

import { childOf, type Cluster, type Forest } from "./clusters";
import type { Model } from "./model";

export interface Link {
  from: number;
  to: number;
  /** How many edges of the graph it stands for. */
  count: number;
}

/** The edges between the children of a cluster, those between the same two as one. */
export function linksIn(model: Model, forest: Forest, cluster: Cluster): Link[] {
  const links = new Map<number, Link>();
  const size = model.count + forest.clusters.length;
  for (let at = cluster.first; at < cluster.last; at += 1) {
    const node = forest.order[at] ?? 0;
    const to = childOf(forest, model.count, cluster, node);
    for (const input of model.inputs(node)) {
      const from = childOf(forest, model.count, cluster, input);
      if (from >= 0 && from !== to) {
        const key = from * size + to;
        const known = links.get(key);
        if (known === undefined) {
          links.set(key, { from, to, count: 1 });
        } else {
          known.count += 1;
        }
      }
    }
  }
  return [...links.values()];
}
