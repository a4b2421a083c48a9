/** Where a node belongs in the tree that a graph is folded into: in a module, in a fused node, in a kernel. */

import type { Grouping } from "./clusters";
import { CALL, GET_ATTR, OUTPUT, PLACEHOLDER, type Model } from "./model";

/** From so many inputs on, those that belong to one module are drawn with it. */
export const MANY_INPUTS = 12;
const PARAMETER = /_(?:parameters|buffers|modules)_|^self_|\.weight$|\.bias$/;
/** In place of a module: see PROTOCOL.md. */
const UNTOLD = -2;
const FLOATING = /^(?:f|bf|c)\d/;

/** A cluster on the way to a node. */
export interface Step {
  name: string;
  type: string;
}

/** What a graph can be grouped by, the best first. Kernels come later than the graph. */
export function groupings(model: Model): Grouping[] {
  const { groups = [], modules } = model.graph;
  return [
    ...(groups.length > 0 ? ["fusion" as const] : []),
    ...(modules.length > 0 ? ["module" as const] : []),
    "order",
    "kernel",
  ];
}

/** The clusters that each node is in, outermost first; undefined: in none. */
export function pathsBy(model: Model, grouping: Grouping): ((node: number) => Step[]) | undefined {
  switch (grouping) {
    case "module":
      return modulePaths(model);
    case "fusion":
      return fusionPaths(model);
    case "kernel":
      return kernelPaths(model);
    default:
      return undefined;
  }
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

/** What was fused stands together, in the module that all of it belongs to; the rest in its own. */
function fusionPaths(model: Model): (node: number) => Step[] {
  const path = modulePaths(model);
  const groups = model.graph.groups ?? [];
  const homes: (Step[] | undefined)[] = [];
  for (let node = 0; node < model.count; node += 1) {
    const group = model.group(node);
    if (group >= 0) {
      const mine = path(node);
      const known = homes[group];
      homes[group] = known === undefined ? mine : common(known, mine);
    }
  }
  return (node) => {
    const group = model.group(node);
    const fused = groups[group];
    return fused === undefined ? path(node) : [...(homes[group] ?? []), { name: fused.name, type: "fused" }];
  };
}

/** The kernel that a node is a part of; what is in none stands with the first kernel that reads it. */
function kernelPaths(model: Model): (node: number) => Step[] {
  const calls = model.kernelCalls ?? [];
  const group = new Int32Array(model.count).fill(-1);
  for (let node = model.count - 1; node >= 0; node -= 1) {
    const mine = model.kernels(node);
    if (mine.length > 0) {
      group[node] = mine[0] ?? -1;
    } else if (model.kind(node) !== PLACEHOLDER && model.kind(node) < OUTPUT) {
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
