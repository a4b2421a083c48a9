/** A graph in the panel: the columns that the server sent, and who uses whom. */

import type { EstimateTarget, FusionDecision, Graph, GraphKernels, Symbol } from "../../protocol";
import { leastMicros } from "./estimates";
import { OPERATION_TITLE } from "./looks";

const TITLE = new RegExp(`^${OPERATION_TITLE}$`);

export const PLACEHOLDER = 0;
export const GET_ATTR = 1;
export const CALL = 2;
export const OUTPUT = 3;

export const SAME = 0;
export const ADDED = 1;
export const GONE = 2;
export const CHANGED = 3;

/** Lists of nodes by node, one after the other: those of node `i` are `items[start[i]]` to `items[start[i + 1] - 1]`. */
interface Adjacency {
  start: Uint32Array;
  items: Uint32Array;
}

export class Model {
  readonly count: number;
  private readonly before: Adjacency;
  private readonly after: Adjacency;
  private calls: GraphKernels | undefined;
  private texts: string[] | undefined;
  private chosen: EstimateTarget | undefined;
  private decided: Map<number, FusionDecision[]> | undefined;

  constructor(readonly graph: Graph) {
    this.count = graph.nodes.name.length;
    this.before = adjacency(this.count, graph.edges, 1, 0);
    this.after = adjacency(this.count, graph.edges, 0, 1);
  }

  /** What a node uses. */
  inputs(node: number): Uint32Array {
    return listOf(this.before, node);
  }

  users(node: number): Uint32Array {
    return listOf(this.after, node);
  }

  name(node: number): string {
    return this.graph.nodes.name[node] ?? "";
  }

  kind(node: number): number {
    return this.graph.nodes.kind[node] ?? CALL;
  }

  op(node: number): string {
    return this.graph.ops[this.graph.nodes.op[node] ?? -1] ?? "";
  }

  /** What it was made from: the operator before decompositions, and what the user's code calls. */
  originals(node: number): readonly string[] {
    return this.graph.originals[this.graph.nodes.original[node] ?? -1] ?? [];
  }

  /** The operations among them that it is a part of: not those that only have another name. */
  decomposed(node: number): string[] {
    return this.originals(node).filter((original) => titleOf(original) !== titleOf(this.op(node)));
  }

  /** Dtype, shape, strides and device as printed. */
  detail(node: number): string {
    return this.graph.details[this.graph.nodes.detail[node] ?? -1] ?? "";
  }

  /** What the symbolic sizes in its type stand for. */
  symbols(node: number): Symbol[] {
    const names = new Set<string>(this.detail(node).match(/\w+/g));
    return this.graph.symbols.filter(({ name }) => names.has(name));
  }

  /** Dtype and shape: `f32[8, 32]`. */
  shape(node: number): string {
    return /^\w+\[[^\]]*\]/.exec(this.detail(node))?.[0] ?? "";
  }

  dtype(node: number): string {
    return this.graph.dtypes[this.graph.nodes.dtype[node] ?? -1] ?? "";
  }

  device(node: number): string {
    return this.graph.devices[this.graph.nodes.device[node] ?? -1] ?? "";
  }

  /** Takes the device of this name to estimate times for; no device if the server does not know it. */
  chooseTarget(name: string | undefined): void {
    this.chosen = this.graph.targets.find((each) => each.name === name);
  }

  get target(): EstimateTarget | undefined {
    return this.chosen;
  }

  /** The least time of a call on the device that was chosen, in microseconds. */
  micros(node: number): number | undefined {
    const { moved, flops } = this.graph.nodes;
    return this.chosen === undefined || this.kind(node) !== CALL
      ? undefined
      : leastMicros(this.chosen, moved[node], flops[node], this.dtype(node));
  }

  module(node: number): { path: string[]; type: string } | undefined {
    return this.graph.modules[this.graph.nodes.module[node] ?? -1];
  }

  /** What was fused with others: the number of its group. */
  group(node: number): number {
    return this.graph.nodes.group?.[node] ?? -1;
  }

  /** What Inductor decided on a node and others. */
  decisions(node: number): readonly FusionDecision[] {
    if (this.decided === undefined) {
      this.decided = new Map();
      for (const decision of this.graph.decisions ?? []) {
        for (const one of [...decision.first, ...decision.second]) {
          this.decided.set(one, [...(this.decided.get(one) ?? []), decision]);
        }
      }
    }
    return this.decided.get(node) ?? [];
  }

  state(node: number): number {
    return this.graph.nodes.state?.[node] ?? SAME;
  }

  get compared(): boolean {
    return this.graph.nodes.state !== undefined;
  }

  /** `addmm`, or the name if it is not an operation. */
  title(node: number): string {
    if (this.kind(node) !== CALL) {
      return this.name(node);
    }
    return titleOf(this.op(node));
  }

  /** The numbers of the calls of kernels that contain a node. */
  kernels(node: number): readonly number[] {
    return this.calls?.nodes[node] ?? [];
  }

  get kernelCalls(): GraphKernels["calls"] | undefined {
    return this.calls?.calls;
  }

  /** The kernels come later than the graph, and describe the nodes that are in the stage: not of those that are gone. */
  setKernels(kernels: GraphKernels): void {
    const nodes: number[][] = [];
    let next = 0;
    for (let node = 0; node < this.count; node += 1) {
      nodes.push(this.state(node) === GONE ? [] : (kernels.nodes[next++] ?? []));
    }
    this.calls = { calls: kernels.calls, nodes };
  }

  /** What a search looks at, in lower case. */
  text(node: number): string {
    this.texts ??= [];
    return (this.texts[node] ??= [
      this.name(node),
      this.op(node),
      ...this.originals(node),
      this.detail(node),
      this.module(node)?.path.join(".") ?? "",
      this.module(node)?.type ?? "",
    ]
      .join("\n")
      .toLowerCase());
  }

  /** Where a node is: in the stage, and in the user's file where PyTorch knows it. */
  stagePlace(node: number): { uri: string; line: number } {
    const gone = this.state(node) === GONE && this.graph.beforeUri !== null;
    return { uri: gone ? (this.graph.beforeUri ?? "") : this.graph.stageUri, line: this.graph.nodes.line[node] ?? 0 };
  }

  origin(node: number): { uri: string; line: number } | undefined {
    const uri = this.graph.files[this.graph.nodes.file[node] ?? -1];
    return uri === undefined ? undefined : { uri, line: this.graph.nodes.originLine[node] ?? 0 };
  }

  /** The nodes of a line of the user's file or of the stage. */
  nodesAt(uri: string, line: number): number[] {
    const { file, originLine } = this.graph.nodes;
    const found: number[] = [];
    const wanted = decoded(uri);
    const ofStage = wanted === decoded(this.graph.stageUri);
    const number = ofStage ? -1 : this.graph.files.findIndex((each) => decoded(each) === wanted);
    if (!ofStage && number < 0) {
      return found;
    }
    for (let node = 0; node < this.count; node += 1) {
      const isThere = ofStage
        ? this.isTold(node, line)
        : (file[node] === number && originLine[node] === line) || this.hasPlace(node, number, line);
      if (isThere) {
        found.push(node);
      }
    }
    return found;
  }

  /** Whether a line of the stage describes a node. */
  private isTold(node: number, line: number): boolean {
    const spans = this.graph.nodes.spans?.[node];
    if (spans === undefined) {
      return this.graph.nodes.line[node] === line && this.state(node) !== GONE;
    }
    return spans.some((first, at) => at % 2 === 0 && line >= first && line <= (spans[at + 1] ?? first));
  }

  /** Whether a line is among the further ones that a node came from. */
  private hasPlace(node: number, file: number, line: number): boolean {
    const places = this.graph.nodes.places?.[node] ?? [];
    for (let at = 0; at < places.length; at += 2) {
      if (places[at] === file && places[at + 1] === line) {
        return true;
      }
    }
    return false;
  }
}

/** `addmm` of `aten.addmm.default`. */
export function titleOf(operation: string): string {
  return operation.replace(TITLE, "$1$2");
}

/** Editors and servers do not agree on what has to be escaped. */
export function decoded(uri: string): string {
  try {
    return decodeURIComponent(uri);
  } catch {
    return uri;
  }
}

function adjacency(count: number, edges: readonly number[], of: 0 | 1, to: 0 | 1): Adjacency {
  const start = new Uint32Array(count + 1);
  for (let at = 0; at < edges.length; at += 2) {
    const node = edges[at + of] ?? 0;
    start[node + 1] = (start[node + 1] ?? 0) + 1;
  }
  for (let node = 0; node < count; node += 1) {
    start[node + 1] = (start[node + 1] ?? 0) + (start[node] ?? 0);
  }
  const next = start.slice();
  const items = new Uint32Array(edges.length / 2);
  for (let at = 0; at < edges.length; at += 2) {
    const node = edges[at + of] ?? 0;
    const place = next[node] ?? 0;
    items[place] = edges[at + to] ?? 0;
    next[node] = place + 1;
  }
  return { start, items };
}

function listOf({ start, items }: Adjacency, node: number): Uint32Array {
  return items.subarray(start[node] ?? 0, start[node + 1] ?? 0);
}
