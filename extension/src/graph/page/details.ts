/** What is known about the selection, with ways to where it comes from and to what it became. */

import type { FusionDecision } from "../../protocol";
import { pathOf, type Forest } from "../model/clusters";
import * as units from "../../units";
import { inputName, type Labels } from "../draw/labels";
import { CALL, decoded, PLACEHOLDER, type Model } from "../model/model";
import { h, setText } from "../../panels/dom";
import { symbolText } from "../../panels/symbols";
import type { Page } from "./page";
import type { Box } from "../layout/scene";

export interface Ways {
  goToSource(node: number): void;
  goToStage(node: number): void;
  goToKernel(call: number): void;
  select(node: number): void;
  selectCluster(item: number): void;
  expandBelow(item: number): void;
  toggle(item: number): void;
}

const MOST_LINKS = 8;
const MOST_KERNELS = 3;
const MOST_REASONS = 3;

export function showDetails(page: Page, model: Model, labels: Labels, box: Box | undefined, ways: Ways): void {
  const { details } = page;
  details.root.hidden = box === undefined;
  if (box === undefined) {
    return;
  }
  if (box.cluster === undefined) {
    ofNode(page, model, box.item, ways);
  } else {
    ofCluster(page, model, labels, box, ways);
  }
}

function ofNode(page: Page, model: Model, node: number, ways: Ways): void {
  const { details } = page;
  setText(details.name, model.name(node));
  setText(details.op, model.op(node));
  setText(details.detail, model.detail(node));
  const { nodes } = model.graph;
  const origin = model.origin(node);
  const module = model.module(node);
  const value = (list: readonly (number | null)[], words: (value: number) => string): string => {
    const known = list[node];
    return known === null || known === undefined || known === 0 || model.kind(node) !== CALL ? "" : words(known);
  };
  const result = nodes.bytes[node];
  facts(details.facts, [
    ["result", result === null || result === undefined ? "" : units.size(result)],
    ["moves", value(nodes.moved, units.size)],
    ["computes", value(nodes.flops, units.flops)],
    lowerBound(model, [node]),
    ["decomposed from", model.decomposed(node).join(", ")],
    ["module", module === undefined ? "" : `${module.path.join(".")} (${module.type})`],
    ["line", origin === undefined ? "" : `${decoded(origin.uri).split("/").pop() ?? ""}:${origin.line + 1}`],
    ...model.symbols(node).map(({ name, text, source }): [string, string] => [name, symbolText(text, source)]),
    ["change", ["", "added", "removed", "changed"][model.state(node)] ?? ""],
  ]);
  details.links.replaceChildren(
    ...links("uses", [...model.inputs(node)], model, ways),
    ...links("used by", [...model.users(node)], model, ways),
    ...decisions(model, node, ways),
  );
  const source = action("go-source", "Go to Source Line", "Enter", () => ways.goToSource(node));
  source.disabled = origin === undefined;
  source.title = origin === undefined ? "PyTorch gives no source line for this node" : "Enter";
  const calls = model.kernels(node);
  const names = new Map(calls.map((call) => [model.kernelCalls?.[call]?.name ?? "", call]));
  const kernels = [...names]
    .slice(0, MOST_KERNELS)
    .map(([name, call], at) =>
      action(
        `go-kernel-${at}`,
        names.size === 1 ? "Show Generated Kernel" : `Kernel ${short(name)}`,
        at === 0 ? `${name} (K)` : name,
        () => ways.goToKernel(call),
      ),
    );
  details.actions.replaceChildren(
    source,
    action("go-stage", "Show in Stage", "Alt+Enter", () => ways.goToStage(node)),
    ...kernels,
  );
}

/** Nothing unless a device was chosen to estimate for. */
function lowerBound(model: Model, nodes: ArrayLike<number> & Iterable<number>): [name: string, value: string] {
  const least = Array.from(nodes).reduce((all, node) => all + (model.micros(node) ?? 0), 0);
  return [`lower bound on ${model.target?.name ?? ""}`, least > 0 ? units.duration(least / 1e6) : ""];
}

function ofCluster(page: Page, model: Model, labels: Labels, box: Box, ways: Ways): void {
  const { details } = page;
  const { cluster } = box;
  if (cluster === undefined) {
    return;
  }
  const nodes = labels.nodesOf(cluster);
  setText(details.name, cluster.name);
  setText(details.op, cluster.type === "part" ? "part of its cluster, in order" : cluster.type);
  setText(details.detail, units.count(nodes.length, "node"));
  const sum = (list: readonly (number | null)[]): number => nodes.reduce((all, node) => all + (list[node] ?? 0), 0);
  const columns = model.graph.nodes;
  const [moved, computed] = [sum(columns.moved), sum(columns.flops)];
  facts(details.facts, [
    ["moves", moved > 0 ? units.size(moved) : ""],
    ["computes", computed > 0 ? units.flops(computed) : ""],
    lowerBound(model, nodes),
  ]);
  details.links.replaceChildren();
  details.actions.replaceChildren(
    action("toggle", box.isOpen ? "Collapse" : "Expand", "Enter", () => ways.toggle(box.item)),
    action("expand-below", "Expand All Below", "*", () => ways.expandBelow(box.item)),
  );
}

/** The clusters around the selection as buttons; the last is what is selected. */
export function showPath(page: Page, forest: Forest, model: Model, box: Box | undefined, ways: Ways): void {
  const above = box === undefined ? [] : pathOf(forest, model.count, box.item);
  const steps = above.map((cluster) => {
    const step = h("button", { type: "button", title: cluster.type }, cluster.name);
    step.addEventListener("click", () => ways.selectCluster(cluster.item));
    return step;
  });
  const name = box === undefined ? "" : (box.cluster?.name ?? model.name(box.item));
  const parts: Node[] = [];
  for (const step of steps) {
    parts.push(step, h("span", { "aria-hidden": "true" }, "›"));
  }
  page.path.replaceChildren(...parts, ...(name === "" ? [] : [h("span", { "aria-current": "location" }, name)]));
}

function facts(list: HTMLElement, pairs: [string, string][]): void {
  list.replaceChildren(
    ...pairs
      .filter(([, value]) => value !== "")
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function links(title: string, nodes: number[], model: Model, ways: Ways, why = ""): Node[] {
  if (nodes.length === 0) {
    return [];
  }
  const more = nodes.length - MOST_LINKS;
  const list = nodes.slice(0, MOST_LINKS).map((node) => {
    const link = h(
      "button",
      { type: "button", class: "link", title: `${model.name(node)} ${model.op(node)} ${model.detail(node)}` },
      model.kind(node) === PLACEHOLDER ? inputName(model.name(node)) : model.name(node),
    );
    link.addEventListener("click", () => ways.select(node));
    return link;
  });
  return [
    h(
      "span",
      {},
      h("span", { class: "quiet" }, title),
      ...list,
      more > 0 ? ` and ${units.count(more)} more` : "",
      ...(why === "" ? [] : [h("span", { class: "quiet" }, ` — ${why}`)]),
    ),
  ];
}

/** What Inductor fused it with, and what not and why. */
function decisions(model: Model, node: number, ways: Ways): Node[] {
  const all = model.decisions(node);
  const others = ({ first, second }: FusionDecision): number[] => (first.includes(node) ? second : first);
  const fused = [...new Set(all.filter((one) => one.fused).flatMap(others))];
  const apart = all.filter((one) => !one.fused);
  const reasons = [...new Set(apart.map(({ why }) => why))].slice(0, MOST_REASONS);
  return [
    ...links("fused with", fused, model, ways),
    ...reasons.flatMap((why) => {
      const nodes = [...new Set(apart.filter((one) => one.why === why).flatMap(others))];
      return links("not fused with", nodes, model, ways, why);
    }),
  ];
}

function action(id: string, text: string, title: string, run: () => void): HTMLButtonElement {
  const button = h("button", { type: "button", id, title }, text);
  button.addEventListener("click", run);
  return button;
}

function short(name: string): string {
  return name.length <= 26 ? name : `${name.slice(0, 12)}…${name.slice(-12)}`;
}
