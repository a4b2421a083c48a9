/** The edges that are drawn inside a cluster. */

import type { Cluster, Forest } from "./clusters";
import type { Model } from "./model";

export interface Link {
  from: number;
  to: number;
  /** How many edges of the graph it represents. */
  count: number;
}

/** The edges between the children of a cluster, those between the same two as one. */
export function linksIn(model: Model, forest: Forest, cluster: Cluster): Link[] {
  const links = new Map<number, Link>();
  const size = model.count + forest.clusters.length;
  const { first, last } = cluster;
  const child = childrenByPlace(model, forest, cluster);
  for (let at = first; at < last; at += 1) {
    const to = child[at - first] ?? -1;
    for (const input of model.inputs(forest.order[at] ?? 0)) {
      const place = forest.place[input] ?? -1;
      const from = place >= first && place < last ? (child[place - first] ?? -1) : -1;
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

/** Which child each node of a cluster is in or is, by its place among them: every edge asks for two. */
function childrenByPlace(model: Model, forest: Forest, { children, first, last }: Cluster): Int32Array {
  const found = new Int32Array(last - first).fill(-1);
  for (const item of children) {
    const inner = forest.clusters[item - model.count];
    if (inner === undefined) {
      found[(forest.place[item] ?? first) - first] = item;
    } else {
      found.fill(item, inner.first - first, inner.last - first);
    }
  }
  return found;
}
