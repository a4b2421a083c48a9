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

type Steps = readonly Step[];

/** The path of what is in no cluster. */
export const NOWHERE: readonly Step[] = [];

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
export function pathsBy(model: Model, grouping: Grouping): ((node: number) => Steps) | undefined {
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

interface Branch {
  step: Step;
  children: Map<string, Branch>;
}

/** The modules that a node is in, outermost first; inputs and parameters are placed where they are used. */
function modulePaths(model: Model): (node: number) => Steps {
  // A tree of names: a large model has ten thousand modules, most of them with the same few around them.
  const root: Branch = { step: { name: "", type: "" }, children: new Map() };
  const known = model.graph.modules.map(({ path, type }) => {
    let at = root;
    const steps = path.map((name) => {
      let next = at.children.get(name);
      if (next === undefined) {
        next = { step: { name, type: "" }, children: new Map() };
        at.children.set(name, next);
      }
      at = next;
      return next.step;
    });
    at.step.type = type;
    return steps;
  });
  const { backward, kind } = model.graph.nodes;
  // A graph may be that of the backward alone; only where it has both are they kept apart.
  const isSplit = backward.includes(1) && kind.some((each, node) => each === CALL && backward[node] !== 1);
  const modules = withNeighbours(model, known);
  const ofBackward = new Map<Steps, Steps>();
  const own = (node: number): Steps => {
    const steps = modules[node] ?? NOWHERE;
    if (!isSplit || backward[node] !== 1) {
      return steps;
    }
    const mine = ofBackward.get(steps) ?? [{ name: "backward", type: "" }, ...steps];
    ofBackward.set(steps, mine);
    return mine;
  };
  const many = kind.filter((each) => each === PLACEHOLDER).length > MANY_INPUTS;
  return (node) => {
    if (kind[node] === PLACEHOLDER || kind[node] === GET_ATTR) {
      const isParameter = kind[node] === GET_ATTR || PARAMETER.test(model.name(node));
      return isParameter || (many && FLOATING.test(model.dtype(node))) ? shared(model, node, own) : NOWHERE;
    }
    return own(node);
  };
}

/**
 * The modules of each operation. One that a pass made without saying for what is drawn where what it uses and what uses
 * it are both at home.
 */
function withNeighbours(model: Model, known: readonly Steps[]): Steps[] {
  const { module } = model.graph.nodes;
  const modules = module.map((at) => known[at] ?? NOWHERE);
  const untold = module.flatMap((at, node) => (at === UNTOLD ? [node] : []));
  /** The innermost of its neighbours' modules, and what they all have in common. */
  interface Around {
    deep?: Steps;
    all?: Steps;
  }
  const spread = (order: readonly number[], next: (node: number) => Uint32Array): Map<number, Around> => {
    const found = new Map<number, Around>();
    for (const node of order) {
      const mine: Around = {};
      for (const other of next(node)) {
        const own = known[module[other] ?? -1];
        const { deep, all } = found.get(other) ?? (own === undefined ? {} : { deep: own, all: own });
        if (deep !== undefined && deep.length > (mine.deep?.length ?? -1)) {
          mine.deep = deep;
        }
        if (all !== undefined) {
          mine.all = mine.all === undefined ? all : common(mine.all, all);
        }
      }
      found.set(node, mine);
    }
    return found;
  };
  const above = spread(untold, (node) => model.inputs(node));
  const below = spread([...untold].reverse(), (node) => model.users(node));
  for (const node of untold) {
    const { deep, all } = above.get(node) ?? {};
    const { deep: other, all: others } = below.get(node) ?? {};
    modules[node] = deep === undefined || other === undefined ? (all ?? others ?? NOWHERE) : common(deep, other);
  }
  return modules;
}

function common(left: Steps, right: Steps): Steps {
  const differs = left.findIndex((step, depth) => step.name !== right[depth]?.name);
  return differs < 0 ? left : left.slice(0, differs);
}

/** The modules that all users of a node have in common: those of the forward, where it has any there. */
function shared(model: Model, node: number, own: (node: number) => Steps): Steps {
  const { backward } = model.graph.nodes;
  let all: Steps | undefined;
  let forward: Steps | undefined;
  for (const user of model.users(node)) {
    if (model.kind(user) === CALL) {
      const mine = own(user);
      all = all === undefined ? mine : common(all, mine);
      if (backward[user] !== 1) {
        forward = forward === undefined ? mine : common(forward, mine);
      }
    }
  }
  return forward ?? all ?? NOWHERE;
}

/** What was fused is together, in the module that all of it belongs to; the rest in its own. */
function fusionPaths(model: Model): (node: number) => Steps {
  const path = modulePaths(model);
  const groups = model.graph.groups ?? [];
  const homes: (Steps | undefined)[] = [];
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

/** The kernel that a node is a part of; what is in none is placed with the first kernel that reads it. */
function kernelPaths(model: Model): (node: number) => Steps {
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
      return NOWHERE;
    }
    return [{ name: (several.get(call.name) ?? 0) > 1 ? `${call.name} #${call.call}` : call.name, type: "kernel" }];
  };
}
