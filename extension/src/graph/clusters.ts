/**
 * The tree that a graph is folded into: by module, by kernel, or by order alone.
 *
 * An *item* is a node (its number) or a cluster (the number of nodes plus the cluster's). No cluster has more children
 * than can be laid out at once; where a grouping would make more, runs of neighbours become clusters of their own.
 */

import { CALL, GET_ATTR, OUTPUT, PLACEHOLDER, type Model } from "./model";

export type Grouping = "module" | "kernel" | "order";

export interface Cluster {
  item: number;
  /** What is kept of it in the panel's state, and tells it from all others. */
  key: string;
  name: string;
  /** The module's class, or what else there is to say. */
  type: string;
  parent: Cluster | undefined;
  /** In the order of the graph. */
  children: number[];
  /** Its nodes are `order[first]` to `order[last - 1]`. */
  first: number;
  last: number;
  depth: number;
}

export interface Forest {
  root: Cluster;
  clusters: Cluster[];
  /** The nodes that are shown, so that those of a cluster stand side by side. */
  order: Uint32Array;
  /** The place of each node in `order`; -1: not shown. */
  place: Int32Array;
  /** The cluster that each node is in. */
  home: (Cluster | undefined)[];
}

/** More children than this are grouped once more. */
export const MOST_CHILDREN = 80;
const CHUNK = 40;
/** From so many inputs on, those that belong to one module are drawn with it. */
const MANY_INPUTS = 12;
const PARAMETER = /_(?:parameters|buffers|modules)_|^self_|\.weight$|\.bias$/;
/** In place of a module: see PROTOCOL.md. */
const UNTOLD = -2;
const FLOATING = /^(?:f|bf|c)\d/;

interface Draft {
  name: string;
  key: string;
  type: string;
  children: Map<string, Draft>;
  nodes: number[];
  /** The number of its first node, by which it stands among its siblings. */
  first: number;
}

export function fold(model: Model, grouping: Grouping, shown?: (node: number) => boolean): Forest {
  const draft = newDraft("", "", "");
  const paths = grouping === "module" ? modulePaths(model) : grouping === "kernel" ? kernelPaths(model) : undefined;
  for (let node = 0; node < model.count; node += 1) {
    if (shown === undefined || shown(node)) {
      let at = draft;
      // Inputs stand before everything; where their users are says where they belong.
      const first = model.kind(node) === CALL || model.kind(node) === OUTPUT ? node : model.count + node;
      at.first = Math.min(at.first, first);
      for (const { name, type } of paths?.(node) ?? []) {
        let next = at.children.get(name);
        if (next === undefined) {
          next = newDraft(name, `${at.key}/${name}`, type);
          at.children.set(name, next);
        }
        next.type ||= type;
        next.first = Math.min(next.first, first);
        at = next;
      }
      at.nodes.push(node);
    }
  }
  return finish(model, draft);
}

interface Step {
  name: string;
  type: string;
}

function newDraft(name: string, key: string, type: string): Draft {
  return { name, key, type, children: new Map(), nodes: [], first: Number.MAX_SAFE_INTEGER };
}

/** The modules that a node is in, outermost first; inputs and parameters stand where they are used. */
function modulePaths(model: Model): (node: number) => Step[] {
  const types = new Map<string, string>();
  for (const { path, type } of model.graph.modules) {
    types.set(path.join("\n"), type);
  }
  const known = model.graph.modules.map(({ path }) =>
    path.map((name, depth) => ({ name, type: types.get(path.slice(0, depth + 1).join("\n")) ?? "" })),
  );
  const { backward, kind } = model.graph.nodes;
  // A graph may be that of the backward alone; only where it has both are they kept apart.
  const isSplit = backward.includes(1) && kind.some((each, node) => each === CALL && backward[node] !== 1);
  const modules = withNeighbours(model, known);
  const own = (node: number): Step[] => {
    const steps = modules[node] ?? [];
    return isSplit && backward[node] === 1 ? [{ name: "backward", type: "" }, ...steps] : steps;
  };
  const many = kind.filter((each) => each === PLACEHOLDER).length > MANY_INPUTS;
  return (node) => {
    if (kind[node] === PLACEHOLDER || kind[node] === GET_ATTR) {
      const isParameter = kind[node] === GET_ATTR || PARAMETER.test(model.name(node));
      return isParameter || (many && FLOATING.test(model.dtype(node))) ? shared(model, node, own) : [];
    }
    return own(node);
  };
}

/**
 * The modules of each operation. One that a pass made without saying for what is drawn where what it uses and what uses
 * it are both at home.
 */
function withNeighbours(model: Model, known: Step[][]): Step[][] {
  const { module } = model.graph.nodes;
  /** The innermost of its neighbours' modules, and what they all have in common. */
  const spread = (order: Iterable<number>, next: (node: number) => Uint32Array): { deep?: Step[]; all?: Step[] }[] => {
    const found: { deep?: Step[]; all?: Step[] }[] = [];
    for (const node of order) {
      const own = known[module[node] ?? -1];
      const mine: { deep?: Step[]; all?: Step[] } = own === undefined ? {} : { deep: own, all: own };
      if (module[node] === UNTOLD) {
        for (const other of next(node)) {
          const { deep, all } = found[other] ?? {};
          if (deep !== undefined && deep.length > (mine.deep?.length ?? -1)) {
            mine.deep = deep;
          }
          if (all !== undefined) {
            mine.all = mine.all === undefined ? all : common(mine.all, all);
          }
        }
      }
      found[node] = mine;
    }
    return found;
  };
  const nodes = Array.from({ length: model.count }, (_, node) => node);
  const above = spread(nodes, (node) => model.inputs(node));
  const below = spread(nodes.reverse(), (node) => model.users(node));
  return above.map(({ deep, all }, node) => {
    const { deep: other, all: others } = below[node] ?? {};
    return deep === undefined || other === undefined ? (all ?? others ?? []) : common(deep, other);
  });
}

function common(left: Step[], right: Step[]): Step[] {
  const differs = left.findIndex((step, depth) => step.name !== right[depth]?.name);
  return differs < 0 ? left : left.slice(0, differs);
}

/** The modules that all users of a node have in common: those of the forward, where it has any there. */
function shared(model: Model, node: number, own: (node: number) => Step[]): Step[] {
  const { backward } = model.graph.nodes;
  const all = [...model.users(node)].filter((user) => model.kind(user) === CALL);
  const forward = all.filter((user) => backward[user] !== 1);
  const paths = (forward.length > 0 ? forward : all).map(own);
  return paths.length === 0 ? [] : paths.reduce(common);
}

/** The kernel that a node is a part of; what is in none stands with the first kernel that reads it. */
function kernelPaths(model: Model): (node: number) => Step[] {
  const calls = model.kernelCalls ?? [];
  const group = new Int32Array(model.count).fill(-1);
  for (let node = model.count - 1; node >= 0; node -= 1) {
    const mine = model.kernels(node);
    if (mine.length > 0) {
      group[node] = mine[0] ?? -1;
    } else if (model.kind(node) !== PLACEHOLDER && model.kind(node) < 3) {
      let first = -1;
      for (const user of model.users(node)) {
        const theirs = group[user] ?? -1;
        first = first < 0 || (theirs >= 0 && theirs < first) ? theirs : first;
      }
      group[node] = first;
    } else if (model.kind(node) === PLACEHOLDER) {
      const theirs = new Set(
        [...model.users(node)].filter((user) => model.kind(user) === CALL).map((user) => group[user]),
      );
      group[node] = theirs.size === 1 ? ([...theirs][0] ?? -1) : -1;
    }
  }
  const several = new Map<string, number>();
  for (const { name } of calls) {
    several.set(name, (several.get(name) ?? 0) + 1);
  }
  return (node) => {
    const call = calls[group[node] ?? -1];
    if (call === undefined) {
      return [];
    }
    return [{ name: (several.get(call.name) ?? 0) > 1 ? `${call.name} #${call.call}` : call.name, type: "kernel" }];
  };
}

function finish(model: Model, draft: Draft): Forest {
  const clusters: Cluster[] = [];
  const order: number[] = [];
  const place = new Int32Array(model.count).fill(-1);
  const home: (Cluster | undefined)[] = [];

  const make = (name: string, key: string, type: string, parent: Cluster | undefined): Cluster => {
    const cluster: Cluster = {
      item: model.count + clusters.length,
      key,
      name,
      type,
      parent,
      children: [],
      first: order.length,
      last: order.length,
      depth: parent === undefined ? 0 : parent.depth + 1,
    };
    clusters.push(cluster);
    return cluster;
  };
  const leaf = (node: number, parent: Cluster): void => {
    parent.children.push(node);
    place[node] = order.length;
    order.push(node);
    home[node] = parent;
  };
  type Part = Draft | number;
  const firstOf = (part: Part): number => (typeof part === "number" ? part : part.first);

  const partsOf = (from: Draft): Part[] => {
    const parts: Part[] = [...from.nodes];
    for (const child of from.children.values()) {
      const folded = unwrapped(child);
      if (folded.children.size === 0 && folded.nodes.length === 1) {
        parts.push(...folded.nodes); // A box around one node says nothing that the node does not.
      } else {
        parts.push(folded);
      }
    }
    return parts.sort((left, right) => firstOf(left) - firstOf(right));
  };
  const fill = (cluster: Cluster, parts: Part[], from: number): void => {
    if (parts.length > MOST_CHILDREN) {
      // Runs of neighbours, as even as they can be; many runs are grouped again.
      let size = CHUNK;
      while (Math.ceil(parts.length / size) > MOST_CHILDREN) {
        size *= CHUNK;
      }
      const runs = Math.ceil(parts.length / size);
      for (let run = 0; run < runs; run += 1) {
        const [begin, end] = [Math.floor((run * parts.length) / runs), Math.floor(((run + 1) * parts.length) / runs)];
        const name = `${from + begin + 1}–${from + end}`;
        const group = make(name, `${cluster.key}/${name}`, "part", cluster);
        cluster.children.push(group.item);
        fill(group, parts.slice(begin, end), from + begin);
        group.last = order.length;
      }
      return;
    }
    for (const part of parts) {
      if (typeof part === "number") {
        leaf(part, cluster);
      } else {
        const child = make(part.name, part.key, part.type, cluster);
        cluster.children.push(child.item);
        fill(child, partsOf(part), 0);
        child.last = order.length;
      }
    }
  };

  const root = make("", "", "", undefined);
  const parts = partsOf(draft);
  const inputs = parts.filter((part) => typeof part === "number" && model.kind(part) === PLACEHOLDER);
  if (inputs.length > MANY_INPUTS && parts.length > inputs.length) {
    const isInput = new Set(inputs);
    const group = newDraft("inputs", "/inputs", "");
    group.nodes = inputs as number[];
    group.first = firstOf(inputs[0] ?? 0);
    fill(root, [group, ...parts.filter((part) => !isInput.has(part))], 0);
  } else {
    fill(root, parts, 0);
  }
  root.last = order.length;
  return { root, clusters, order: Uint32Array.from(order), place, home };
}

/** A chain of modules with nothing else in them is one: `encoder.layer`. */
function unwrapped(draft: Draft): Draft {
  let at = draft;
  while (at.nodes.length === 0 && at.children.size === 1) {
    const [only] = at.children.values();
    if (only === undefined) {
      break;
    }
    at = { ...only, name: `${at.name}.${only.name}` };
  }
  return at;
}

/** The clusters around an item, outermost first, without the root. */
export function pathOf(forest: Forest, count: number, item: number): Cluster[] {
  const path: Cluster[] = [];
  let at = item < count ? forest.home[item] : forest.clusters[item - count]?.parent;
  while (at !== undefined && at !== forest.root) {
    path.unshift(at);
    at = at.parent;
  }
  return path;
}

/** Which child of a cluster a node is in or is; -1: it is not in the cluster. */
export function childOf(forest: Forest, count: number, cluster: Cluster, node: number): number {
  const place = forest.place[node] ?? -1;
  if (place < cluster.first || place >= cluster.last) {
    return -1;
  }
  const begin = (item: number): number =>
    (item < count ? forest.place[item] : forest.clusters[item - count]?.first) ?? 0;
  let [low, high] = [0, cluster.children.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (begin(cluster.children[middle] ?? 0) <= place) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return cluster.children[low] ?? -1;
}

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

/**
 * What is open at first: from the top, as long as all that shows can be laid out in a moment. Clusters of one kind that
 * stand side by side, as the layers of a model do, are opened together or not at all.
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
  let level = teams(forest, count, forest.root);
  let visible = forest.root.children.length;
  while (level.length > 0) {
    const next: Cluster[][] = [];
    for (const team of level.sort((left, right) => important(right) - important(left))) {
      const more = team.reduce((all, cluster) => all + cluster.children.length, 0);
      if (important(team) > 0 && visible + more <= most) {
        visible += more;
        for (const cluster of team) {
          open.add(cluster.item);
          next.push(...teams(forest, count, cluster));
        }
      }
    }
    level = next;
  }
  return open;
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

export function childClusters(forest: Forest, count: number, cluster: Cluster): Cluster[] {
  return cluster.children.flatMap((item) => (item < count ? [] : (forest.clusters[item - count] ?? [])));
}
