/** What is on the canvas: boxes and routes in the graph's own units, with the open clusters laid out inside each other. */

import type { Cluster, Forest } from "../model/clusters";
import type { Layout, Layouter, Size } from "./layout";
import { linksIn } from "../model/links";
import type { Model } from "../model/model";

export interface Box {
  item: number;
  /** Left top corner. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** Undefined for a node. */
  cluster: Cluster | undefined;
  isOpen: boolean;
  parent: Box | undefined;
  children: Box[];
  /** Between the children. */
  wires: Wire[];
}

export interface Wire {
  from: Box;
  to: Box;
  count: number;
  points: Float64Array;
}

export interface Scene extends Size {
  root: Box;
  byItem: Map<number, Box>;
}

/** A cluster that is laid out, with its open children. */
interface Inside {
  layout: Layout;
  sizes: Size[];
  parts: (Inside | undefined)[];
}

export const HEADER = 26;
export const PADDING = 14;

/** Lays out what is open. Raises LayoutCancelled. */
export async function arrange(
  model: Model,
  forest: Forest,
  open: ReadonlySet<number>,
  layouter: Layouter,
  sizeOf: (item: number) => Size,
  onStep: (done: number, of: number) => void = () => undefined,
): Promise<Scene> {
  let [done, all] = [0, 0];

  const inside = async (cluster: Cluster): Promise<Inside> => {
    all += 1;
    const parts = await Promise.all(
      cluster.children.map((item): Promise<Inside | undefined> => {
        const child = forest.clusters[item - model.count];
        return child !== undefined && open.has(item) ? inside(child) : Promise.resolve(undefined);
      }),
    );
    const sizes = cluster.children.map((item, at) => {
      const part = parts[at];
      if (part === undefined) {
        return sizeOf(item);
      }
      const width = Math.max(part.layout.width, sizeOf(item).width - 2 * PADDING);
      return { width: Math.ceil(width + 2 * PADDING), height: Math.ceil(part.layout.height + HEADER + 2 * PADDING) };
    });
    const layout = await layouter.layout(cluster.key, cluster.children, sizes, linksIn(model, forest, cluster));
    done += 1;
    onStep(done, all);
    return { layout, sizes, parts };
  };

  return boxes(model, forest, await inside(forest.root));
}

/** The places of all boxes and wires, from the layouts of the open clusters. */
function boxes(model: Model, forest: Forest, top: Inside): Scene {
  const byItem = new Map<number, Box>();

  const place = (cluster: Cluster, { layout, sizes, parts }: Inside, box: Box, left: number, topEdge: number): void => {
    cluster.children.forEach((item, at) => {
      const [x, y] = [left + (layout.places[2 * at] ?? 0), topEdge + (layout.places[2 * at + 1] ?? 0)];
      const child: Box = {
        item,
        x,
        y,
        width: sizes[at]?.width ?? 0,
        height: sizes[at]?.height ?? 0,
        cluster: forest.clusters[item - model.count],
        isOpen: parts[at] !== undefined,
        parent: box,
        children: [],
        wires: [],
      };
      box.children.push(child);
      byItem.set(item, child);
      const part = parts[at];
      if (part !== undefined && child.cluster !== undefined) {
        const spare = child.width - 2 * PADDING - part.layout.width;
        place(child.cluster, part, child, x + PADDING + spare / 2, y + HEADER + PADDING);
      }
    });
    for (const { from, to, count, points } of layout.routes) {
      const [source, target] = [byItem.get(from), byItem.get(to)];
      if (source !== undefined && target !== undefined && points.length >= 4) {
        const moved = Float64Array.from(points, (value, at) => value + (at % 2 === 0 ? left : topEdge));
        box.wires.push({ from: source, to: target, count, points: moved });
      }
    }
  };

  const root: Box = {
    item: forest.root.item,
    x: 0,
    y: 0,
    width: top.layout.width,
    height: top.layout.height,
    cluster: forest.root,
    isOpen: true,
    parent: undefined,
    children: [],
    wires: [],
  };
  byItem.set(root.item, root);
  place(forest.root, top, root, 0, 0);
  return { width: root.width, height: root.height, root, byItem };
}

/** The box that represents a node: its own, or the closed cluster that it is in. */
export function boxOf(scene: Scene, forest: Forest, node: number): Box | undefined {
  let best = scene.byItem.get(node);
  let at: Cluster | undefined = forest.home[node];
  while (best === undefined && at !== undefined) {
    best = scene.byItem.get(at.item);
    at = at.parent;
  }
  return best;
}

/** The innermost box at a place. */
export function boxAt(scene: Scene, x: number, y: number): Box | undefined {
  let box: Box | undefined = scene.root;
  let found: Box | undefined;
  while (box !== undefined) {
    const inside: Box | undefined = box.children.find(
      (child) => x >= child.x && x <= child.x + child.width && y >= child.y && y <= child.y + child.height,
    );
    found = inside ?? found;
    box = inside;
  }
  return found;
}
