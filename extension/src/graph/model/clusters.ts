/**
 * The tree that a graph is folded into: by module, by kernel, or by order alone.
 *
 * An *item* is a node (its number) or a cluster (the number of nodes plus the cluster's). No cluster has more children
 * than can be laid out at once; if a grouping would make more, runs of neighbours become separate clusters.
 */

import { NOWHERE, pathsBy, type Grouping, type Step } from "./grouping";
import { MANY_INPUTS } from "./looks";
import { CALL, OUTPUT, PLACEHOLDER, type Model } from "./model";

export interface Cluster {
  item: number;
  /** What is kept of it in the panel's state, and tells it from all others. */
  key: string;
  name: string;
  /** The module's class, or what else there is to say. */
  type: string;
  parent: Cluster | undefined;
  /** How many layers of one kind are in it, and nothing else. */
  repeats: number;
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
  /** The nodes that are shown, so that those of a cluster are side by side. */
  order: Uint32Array;
  /** The place of each node in `order`; -1: not shown. */
  place: Int32Array;
  /** The cluster that each node is in. */
  home: (Cluster | undefined)[];
}

/** At the end of the name of a module in a further call, as PyTorch writes it: `norm@1` is the second one. */
const CALL_NUMBER = /@(\d+)(?=\.|$)/g;

/** More children than this are grouped once more. */
export const MOST_CHILDREN = 80;
const CHUNK = 40;
/** So many layers of one kind are folded into one; where they are all there is in a module, two are enough. */
const LEAST_REPEATS = 3;
const LEAST_ALONE = 2;

interface Draft {
  name: string;
  key: string;
  type: string;
  children: Map<string, Draft>;
  nodes: number[];
  /** How many of its nodes are operations. */
  calls: number;
  /** The number of its first node, which gives its place among its siblings. */
  first: number;
  /** Whether it is a run of layers of one kind. */
  isRun?: boolean;
}

export function fold(model: Model, grouping: Grouping, shown?: (node: number) => boolean): Forest {
  const draft = newDraft("", "", "");
  const paths = pathsBy(model, grouping);
  const ends = new Map<readonly Step[], Draft>(); // Most nodes of a module have the very same path.
  for (let node = 0; node < model.count; node += 1) {
    if (shown === undefined || shown(node)) {
      // Inputs come before everything; the place of their users says where they belong.
      const first = model.kind(node) === CALL || model.kind(node) === OUTPUT ? node : model.count + node;
      const path = paths?.(node) ?? NOWHERE;
      let end = ends.get(path);
      if (end === undefined || first < end.first) {
        end = draftAt(draft, path, first);
        ends.set(path, end);
      }
      end.nodes.push(node);
      end.calls += Number(model.kind(node) === CALL);
    }
  }
  return finish(model, draft);
}

/** The draft at the end of a path from the root; no draft around it begins after `first`. */
function draftAt(root: Draft, path: readonly Step[], first: number): Draft {
  let draft = root;
  draft.first = Math.min(draft.first, first);
  for (const { name, type } of path) {
    let child = draft.children.get(name);
    if (child === undefined) {
      child = newDraft(name, `${draft.key}/${name}`, type);
      draft.children.set(name, child);
    }
    child.type ||= type;
    child.first = Math.min(child.first, first);
    draft = child;
  }
  return draft;
}

function newDraft(name: string, key: string, type: string): Draft {
  return { name, key, type, children: new Map(), nodes: [], calls: 0, first: Number.MAX_SAFE_INTEGER };
}

type Part = Draft | number;

const firstOf = (part: Part): number => (typeof part === "number" ? part : part.first);

/** What is in a draft, in the order of the nodes. */
function partsOf(from: Draft): Part[] {
  const parts: Part[] = [...from.nodes];
  for (const child of from.children.values()) {
    const folded = unwrapped(child);
    if (folded.children.size === 0 && folded.nodes.length === 1) {
      parts.push(...folded.nodes); // A box around one node says nothing that the node does not.
    } else {
      parts.push(folded);
    }
  }
  parts.sort((left, right) => firstOf(left) - firstOf(right));
  return from.isRun === true ? parts : withRepeats(parts, from);
}

/** Layers of one kind that follow each other are one cluster, `0–31`, with all of them inside. */
function withRepeats(parts: Part[], parent: Draft): Part[] {
  const found: Part[] = [];
  for (let at = 0; at < parts.length;) {
    const run = runAt(parts, at);
    const [first, last] = [run[0], run.at(-1)];
    if (run.length < LEAST_REPEATS || run.length === parts.length || first === undefined || last === undefined) {
      found.push(...parts.slice(at, at + Math.max(run.length, 1)));
    } else {
      const group = newDraft(rangeOf(first.name, last.name), `${parent.key}/${first.name}…`, "");
      group.children = new Map(run.map((layer) => [layer.name, layer]));
      group.first = first.first;
      group.isRun = true;
      found.push(group);
    }
    at += Math.max(run.length, 1);
  }
  return found;
}

/**
 * Neighbours of one class with the same modules in them, whose names end with a number. They need not have as many
 * operations: the first layer of a forward graph keeps other values for the backward than the second.
 */
function runAt(parts: Part[], from: number): Draft[] {
  const run: Draft[] = [];
  for (let at = from; at < parts.length; at += 1) {
    const part = parts[at];
    const [first = part] = run;
    if (
      typeof part !== "object" ||
      typeof first !== "object" ||
      part.type !== first.type ||
      part.type === "" ||
      !/\d(@\d+)?$/.test(part.name) ||
      kindOf(part) !== kindOf(first)
    ) {
      break;
    }
    run.push(part);
  }
  return run;
}

/** What layers of one kind have in common: the modules in them; if they have none, how many operations. */
function kindOf({ calls, children }: Draft): string {
  return children.size === 0 ? String(calls) : [...children.keys()].sort().join("|");
}

/** `layers.0` and `layers.31` → `layers.0–31`. */
function rangeOf(first: string, last: string): string {
  return `${first.replace(CALL_NUMBER, "")}–${/\d+$/.exec(last.replace(CALL_NUMBER, ""))?.[0] ?? last}`;
}

/** Numbers clusters and nodes in the order in which they are listed. */
class Numbering {
  readonly clusters: Cluster[] = [];
  readonly order: number[] = [];
  readonly place: Int32Array<ArrayBuffer>;
  readonly home: (Cluster | undefined)[] = [];

  constructor(private readonly model: Model) {
    this.place = new Int32Array(model.count).fill(-1);
  }

  make(name: string, key: string, type: string, parent: Cluster | undefined): Cluster {
    const again = /@(\d+)$/.exec(name);
    const cluster: Cluster = {
      item: this.model.count + this.clusters.length,
      key,
      name: name.replace(CALL_NUMBER, ""),
      type: again === null ? type : [type, `call ${Number(again[1]) + 1}`].filter((part) => part !== "").join(", "),
      parent,
      repeats: 0,
      children: [],
      first: this.order.length,
      last: this.order.length,
      depth: parent === undefined ? 0 : parent.depth + 1,
    };
    this.clusters.push(cluster);
    return cluster;
  }

  private leaf(node: number, parent: Cluster): void {
    parent.children.push(node);
    this.place[node] = this.order.length;
    this.order.push(node);
    this.home[node] = parent;
  }

  fill(cluster: Cluster, parts: Part[], from: number): void {
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
        const group = this.make(name, `${cluster.key}/${name}`, "part", cluster);
        cluster.children.push(group.item);
        this.fill(group, parts.slice(begin, end), from + begin);
        group.last = this.order.length;
      }
      return;
    }
    for (const part of parts) {
      if (typeof part === "number") {
        this.leaf(part, cluster);
      } else {
        const child = this.make(part.name, part.key, part.type, cluster);
        cluster.children.push(child.item);
        const inner = partsOf(part);
        // Between the layers of a list there may be operations that are in none, as a sum of gradients is.
        const layers = part.type === "" ? inner.filter((each) => typeof each === "object") : inner;
        const [layer] = layers;
        if (typeof layer === "object" && layers.length >= LEAST_ALONE && runAt(layers, 0).length === layers.length) {
          child.repeats = layers.length;
          child.type = `${layer.type} ×${layers.length}`;
        }
        this.fill(child, inner, 0);
        child.last = this.order.length;
      }
    }
  }
}

function finish(model: Model, draft: Draft): Forest {
  const numbering = new Numbering(model);
  const root = numbering.make("", "", "", undefined);
  const parts = partsOf(draft);
  const inputs = parts.filter((part) => typeof part === "number" && model.kind(part) === PLACEHOLDER);
  if (inputs.length > MANY_INPUTS && parts.length > inputs.length) {
    const isInput = new Set(inputs);
    const group = newDraft("inputs", "/inputs", "");
    group.nodes = inputs as number[];
    group.first = firstOf(inputs[0] ?? 0);
    numbering.fill(root, [group, ...parts.filter((part) => !isInput.has(part))], 0);
  } else {
    numbering.fill(root, parts, 0);
  }
  root.last = numbering.order.length;
  const { clusters, order, place, home } = numbering;
  return { root, clusters, order: Uint32Array.from(order), place, home };
}

/** A chain of modules with nothing else in them is one: `encoder.layer`. */
function unwrapped(draft: Draft): Draft {
  let chain = draft;
  while (chain.nodes.length === 0 && chain.children.size === 1) {
    const [only] = chain.children.values();
    if (only === undefined || only.type === "fused") {
      break; // A fused node is not a module: its name has another meaning.
    }
    chain = { ...only, name: `${chain.name}.${only.name}` };
  }
  return chain;
}

/** The clusters around an item, outermost first, without the root. */
export function pathOf(forest: Forest, count: number, item: number): Cluster[] {
  const path: Cluster[] = [];
  let around = item < count ? forest.home[item] : forest.clusters[item - count]?.parent;
  while (around !== undefined && around !== forest.root) {
    path.unshift(around);
    around = around.parent;
  }
  return path;
}

export function childClusters(forest: Forest, count: number, cluster: Cluster): Cluster[] {
  return cluster.children.flatMap((item) => (item < count ? [] : (forest.clusters[item - count] ?? [])));
}
