/** Which clusters are open at first, and which node a command lands on. */

import { childClusters, pathOf, type Cluster, type Forest } from "../model/clusters";
import { CONSTANT, FAMILIES } from "../model/looks";
import { CALL, type Model } from "../model/model";

const IS_CONSTANT = new RegExp(FAMILIES[CONSTANT]?.pattern ?? "", "i");

/** Some nodes, with the first one that computes before the others: a constant of a line is not what is looked for. */
export function mainFirst(model: Model, nodes: readonly number[]): number[] {
  const main = nodes.find((node) => model.kind(node) === CALL && !IS_CONSTANT.test(model.op(node)));
  return main === undefined ? [...nodes] : [main, ...nodes.filter((node) => node !== main)];
}

/**
 * What is open at first: from the top, as long as all that shows can be laid out in a moment. Clusters of one kind that
 * are side by side, as the layers of a model do, are opened together or not at all. Without weights a run of layers
 * stays closed.
 */
export function openAtFirst(
  forest: Forest,
  count: number,
  most: number,
  weight?: (cluster: Cluster) => number,
): Set<number> {
  const open = new Set<number>([forest.root.item]);
  const important = (clusters: Cluster[]): number =>
    clusters.reduce((all, cluster) => all + (weight?.(cluster) ?? cluster.last - cluster.first), 0);
  const openable = (cluster: Cluster): Cluster[][] =>
    teams(forest, count, cluster).filter((team) => weight !== undefined || team.every(({ repeats }) => repeats === 0));
  let level = openable(forest.root);
  let visible = forest.root.children.length;
  while (level.length > 0) {
    const next: Cluster[][] = [];
    for (const team of level.sort((left, right) => important(right) - important(left))) {
      const more = team.reduce((all, cluster) => all + cluster.children.length, 0);
      if (important(team) > 0 && visible + more <= most) {
        visible += more;
        for (const cluster of team) {
          open.add(cluster.item);
          next.push(...openable(cluster));
        }
      }
    }
    level = next;
  }
  return open;
}

/**
 * The closed clusters around some nodes: all around the first node, those around others as long as opening them shows
 * no more than `most`.
 */
export function closedAround(
  forest: Forest,
  count: number,
  nodes: readonly number[],
  open: ReadonlySet<number>,
  most: number,
): number[] {
  const found = new Set<number>();
  let shown = 0;
  for (const node of nodes) {
    const closed = pathOf(forest, count, node).filter(({ item }) => !open.has(item) && !found.has(item));
    const more = closed.reduce((all, cluster) => all + cluster.children.length, 0);
    if (node === nodes[0] || shown + more <= most) {
      shown += more;
      closed.forEach(({ item }) => found.add(item));
    }
  }
  return [...found];
}

/** The clusters in a cluster, those of one kind together. */
function teams(forest: Forest, count: number, cluster: Cluster): Cluster[][] {
  const found = new Map<string, Cluster[]>();
  for (const child of childClusters(forest, count, cluster)) {
    const isOne = child.type === "part" || child.type === "kernel" || (child.type === "" && !/^\d+$/.test(child.name));
    const kind = isOne ? child.key : child.type;
    found.set(kind, [...(found.get(kind) ?? []), child]);
  }
  return [...found.values()];
}
