/** Where a node belongs in the tree that a graph is folded into: in a module, in a fused node, in a kernel. */

import { CALL, GET_ATTR, OUTPUT, PLACEHOLDER, type Model } from "./model";

export type Grouping = "module" | "fusion" | "kernel" | "order";

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
    ...(modules.some(({ path }) => path.length > 0) ? ["module" as const] : []),
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

/** The modules around a node in the drawing, outermost first: the server says which. */
function modulePaths(model: Model): (node: number) => Steps {
  // A tree of names: a large model has ten thousand modules, most of them with the same few around them.
  const root: Branch = { step: { name: "", type: "" }, children: new Map() };
  const pathsOfModules = model.graph.modules.map(({ path, type }) => {
    let branch = root;
    const steps = path.map((name) => {
      let child = branch.children.get(name);
      if (child === undefined) {
        child = { step: { name, type: "" }, children: new Map() };
        branch.children.set(name, child);
      }
      branch = child;
      return child.step;
    });
    branch.step.type ||= type;
    return steps;
  });
  const { backward, home, kind } = model.graph.nodes;
  // A graph may be that of the backward alone; only where it has both are they kept apart.
  const isSplit = backward.includes(1) && kind.some((ofNode, node) => ofNode === CALL && backward[node] !== 1);
  const ofBackward = new Map<Steps, Steps>();
  return (node) => {
    const steps = pathsOfModules[home[node] ?? -1];
    if (!isSplit || !isOfBackward(model, node, steps !== undefined)) {
      return steps ?? NOWHERE;
    }
    const inside = steps ?? NOWHERE;
    const inBackward = ofBackward.get(inside) ?? [{ name: "backward", type: "" }, ...inside];
    ofBackward.set(inside, inBackward);
    return inBackward;
  };
}

/** Whether a node is of the backward; an input that is drawn where it is used is if nothing else uses it. */
function isOfBackward(model: Model, node: number, isPlaced: boolean): boolean {
  const { backward, kind } = model.graph.nodes;
  if (kind[node] !== PLACEHOLDER && kind[node] !== GET_ATTR) {
    return backward[node] === 1;
  }
  const users = isPlaced ? [...model.users(node)].filter((user) => kind[user] === CALL) : [];
  return users.length > 0 && users.every((user) => backward[user] === 1);
}

function common(left: Steps, right: Steps): Steps {
  const differs = left.findIndex((step, depth) => step.name !== right[depth]?.name);
  return differs < 0 ? left : left.slice(0, differs);
}

/** What was fused is together, in the module that all of it belongs to; the rest in its own. */
function fusionPaths(model: Model): (node: number) => Steps {
  const path = modulePaths(model);
  const groups = model.graph.groups ?? [];
  const homes: (Steps | undefined)[] = [];
  for (let node = 0; node < model.count; node += 1) {
    const group = model.group(node);
    if (group >= 0) {
      const steps = path(node);
      const shared = homes[group];
      homes[group] = shared === undefined ? steps : common(shared, steps);
    }
  }
  return (node) => {
    const group = model.group(node);
    const fused = groups[group];
    return fused === undefined ? path(node) : [...(homes[group] ?? []), { name: fused.name, type: "fused" }];
  };
}

/** The kernel that contains a node; what is in none is placed with the first kernel that reads it. */
function kernelPaths(model: Model): (node: number) => Steps {
  const calls = model.kernelCalls ?? [];
  const group = new Int32Array(model.count).fill(-1);
  for (let node = model.count - 1; node >= 0; node -= 1) {
    const [kernel] = model.kernels(node);
    if (kernel !== undefined) {
      group[node] = kernel;
    } else if (model.kind(node) !== PLACEHOLDER && model.kind(node) < OUTPUT) {
      let first = -1;
      for (const user of model.users(node)) {
        const ofUser = group[user] ?? -1;
        first = first < 0 || (ofUser >= 0 && ofUser < first) ? ofUser : first;
      }
      group[node] = first;
    } else if (model.kind(node) === PLACEHOLDER) {
      const ofUsers = new Set(
        [...model.users(node)].filter((user) => model.kind(user) === CALL).map((user) => group[user]),
      );
      group[node] = ofUsers.size === 1 ? ([...ofUsers][0] ?? -1) : -1;
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
