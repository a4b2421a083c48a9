/**
 * The layout of one cluster's children, by ELK in a separate worker: the panel stays responsive however long it takes.
 *
 * A cluster is laid out by itself, with its open children as boxes of their size. So opening one costs the layout of
 * that one and of those around it, and all others keep theirs.
 */

import ELK, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api";
// The worker's source: scripts/build.mjs makes it a string.
import workerSource from "graph-worker-source";
import type { Link } from "../model/links";

export interface Size {
  width: number;
  height: number;
}

export interface Route extends Link {
  /** x, y, x, y, … from the first to the last bend. */
  points: number[];
}

export interface Layout extends Size {
  /** x and y of each child, in the order in which they were given. */
  places: number[];
  routes: Route[];
}

export class LayoutCancelled extends Error {}

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.padding": "[top=0,left=0,bottom=0,right=0]",
  "elk.spacing.nodeNode": "18",
  "elk.spacing.edgeNode": "10",
  "elk.spacing.edgeEdge": "7",
  "elk.spacing.componentComponent": "24",
  "elk.aspectRatio": "1.6",
  "elk.layered.spacing.nodeNodeBetweenLayers": "26",
  "elk.layered.spacing.edgeNodeBetweenLayers": "10",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "7",
  "elk.layered.mergeEdges": "true",
  "elk.layered.thoroughness": "5",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  "elk.layered.cycleBreaking.strategy": "MODEL_ORDER",
};
/** What is laid out while the graph is still on its way, so that the first that counts finds the worker's code compiled. */
const PRACTICE = [
  [0, 1],
  [1, 2],
  [2, 3],
  [3, 4],
  [0, 2],
  [1, 4],
].map(([from = 0, to = 0]) => ({ from, to, count: 1 }));
/** From so many edges on, simpler routes: seconds become a moment. */
const MANY_EDGES = 500;

export class Layouter {
  private elk: InstanceType<typeof ELK> | undefined;
  private url = "";
  private readonly known = new Map<string, Promise<Layout>>();
  private cancelled: (error: Error) => void = () => undefined;
  private cancellation = this.fresh();

  /** Starts the worker before there is anything to do for it, and has it practise. */
  warmUp(): void {
    const sizes = Array.from({ length: 5 }, (_, at) => ({ width: 80 + at * 20, height: 38 }));
    this.run([0, 1, 2, 3, 4], sizes, PRACTICE).catch(() => undefined);
  }

  private start(): void {
    if (this.elk === undefined) {
      this.url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
      this.elk = new ELK({ workerFactory: () => new Worker(this.url) });
    }
  }

  /** Raises LayoutCancelled, or an Error with what ELK said. */
  layout(
    cluster: string,
    children: readonly number[],
    sizes: readonly Size[],
    links: readonly Link[],
  ): Promise<Layout> {
    const key = `${cluster}|${sizes.map(({ width, height }) => `${width}x${height}`).join(" ")}`;
    let layout = this.known.get(key);
    if (layout === undefined) {
      layout = Promise.race([this.run(children, sizes, links), this.cancellation]);
      this.known.set(key, layout);
      layout.catch(() => this.known.delete(key));
    }
    return layout;
  }

  cancel(): void {
    this.elk?.terminateWorker();
    this.elk = undefined;
    URL.revokeObjectURL(this.url);
    const cancelled = this.cancelled;
    this.cancellation = this.fresh();
    cancelled(new LayoutCancelled("The layout was cancelled."));
  }

  /** Forgets the layouts of another graph, or of another grouping. */
  clear(): void {
    this.known.clear();
  }

  private fresh(): Promise<never> {
    const cancellation = new Promise<never>((_, reject) => {
      this.cancelled = reject;
    });
    cancellation.catch(() => undefined); // Nobody may be waiting.
    return cancellation;
  }

  private async run(children: readonly number[], sizes: readonly Size[], links: readonly Link[]): Promise<Layout> {
    this.start();
    const graph: ElkNode = {
      id: "root",
      layoutOptions: links.length > MANY_EDGES ? { ...OPTIONS, "elk.edgeRouting": "POLYLINE" } : OPTIONS,
      children: children.map((item, at) => ({ id: `n${item}`, ...sizes[at] })),
      edges: links.map(({ from, to }, at) => ({ id: `e${at}`, sources: [`n${from}`], targets: [`n${to}`] })),
    };
    const done = await this.elk?.layout(graph);
    const places = (done?.children ?? []).flatMap(({ x = 0, y = 0 }) => [x, y]);
    const routes = (done?.edges ?? []).flatMap((edge, at) => {
      const link = links[at];
      return link === undefined ? [] : [{ ...link, points: pointsOf(edge) }];
    });
    return { width: done?.width ?? 0, height: done?.height ?? 0, places, routes };
  }
}

function pointsOf({ sections = [] }: ElkExtendedEdge): number[] {
  return sections.flatMap(({ startPoint, bendPoints = [], endPoint }) =>
    [startPoint, ...bendPoints, endPoint].flatMap(({ x, y }) => [x, y]),
  );
}
