/** The graph as DOT, for Graphviz and what reads its files: all of it with its clusters, or what is shown. */

import type { Cluster, Forest } from "../model/clusters";
import type { Labels } from "./labels";
import type { Model } from "../model/model";
import type { Box, Scene } from "../layout/scene";

const HEAD = ["  graph [rankdir=TB];", "  node [shape=box, style=rounded, fontsize=11];", "  edge [arrowsize=0.6];"];

export function wholeAsDot(model: Model, forest: Forest, title: string): string {
  const lines = [`digraph ${quoted(title)} {`, ...HEAD];
  const add = (cluster: Cluster, indent: string): void => {
    for (const item of cluster.children) {
      const child = forest.clusters[item - model.count];
      if (child !== undefined) {
        lines.push(`${indent}subgraph cluster_${child.item} {`, `${indent}  label=${quoted(child.name)};`);
        add(child, `${indent}  `);
        lines.push(`${indent}}`);
      } else {
        const label = [model.title(item), model.shape(item)].filter((part) => part !== "").join("\n");
        lines.push(
          `${indent}n${item} [label=${quoted(label)}, tooltip=${quoted(`${model.name(item)} ${model.detail(item)}`)}];`,
        );
      }
    }
  };
  add(forest.root, "  ");
  for (let node = 0; node < model.count; node += 1) {
    if ((forest.place[node] ?? -1) >= 0) {
      for (const input of model.inputs(node)) {
        if ((forest.place[input] ?? -1) >= 0) {
          lines.push(`  n${input} -> n${node};`);
        }
      }
    }
  }
  return [...lines, "}", ""].join("\n");
}

export function shownAsDot(scene: Scene, labels: Labels, title: string): string {
  const lines = [`digraph ${quoted(title)} {`, ...HEAD];
  const wires: string[] = [];
  // A wire to or from an open cluster has to end at something that is drawn.
  const end = (box: Box, which: "first" | "last"): Box => {
    const inner = which === "first" ? box.children[0] : box.children.at(-1);
    return box.isOpen && inner !== undefined ? end(inner, which) : box;
  };
  const add = (box: Box, indent: string): void => {
    for (const child of box.children) {
      const { title: name, sub } = labels.of(child.item);
      if (child.isOpen) {
        lines.push(`${indent}subgraph cluster_${child.item} {`, `${indent}  label=${quoted(name)};`);
        add(child, `${indent}  `);
        lines.push(`${indent}}`);
      } else {
        const shape = child.cluster === undefined ? "" : ", peripheries=2";
        lines.push(
          `${indent}n${child.item} [label=${quoted([name, sub].filter((part) => part !== "").join("\n"))}${shape}];`,
        );
      }
    }
    for (const { from, to, count } of box.wires) {
      const label = count > 1 ? ` [label="${count}"]` : "";
      wires.push(`  n${end(from, "last").item} -> n${end(to, "first").item}${label};`);
    }
  };
  add(scene.root, "  ");
  return [...lines, ...wires, "}", ""].join("\n");
}

/** A quoted string of DOT: neither markup nor an escape of Graphviz's. */
function quoted(text: string): string {
  return `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}
