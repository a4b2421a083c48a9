/** The text in each box, the size of the box, and the content of a closed cluster. */

import { INPUT_PATH, INPUT_SCOPE } from "../model/looks";
import { changeWords, composition, statesOf, type Colouring } from "./colours";
import type { Cluster, Forest } from "../model/clusters";
import * as units from "../../units";
import type { Size } from "../layout/layout";
import { PLACEHOLDER, type Model } from "../model/model";
import type { Theme } from "./theme";

export interface Label {
  title: string;
  sub: string;
}

const NARROWEST = 64;
const WIDEST = 230;
const NODE_HEIGHT = 38;
const CLUSTER_HEIGHT = 50;
const NODE_MARGIN = 22;
const CLUSTER_MARGIN = 36;

export class Labels {
  private readonly labels = new Map<number, Label>();
  private readonly widths = new Map<string, number>();
  private readonly cut = new Map<string, string>();
  private readonly compositions = new Map<number, number[]>();
  private readonly measure: CanvasRenderingContext2D;

  constructor(
    readonly model: Model,
    private readonly forest: Forest,
    private readonly theme: Theme,
    private readonly colours: Colouring,
  ) {
    this.measure = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  }

  of(item: number): Label {
    let label = this.labels.get(item);
    if (label === undefined) {
      const cluster = this.forest.clusters[item - this.model.count];
      const { title, sub } = cluster === undefined ? this.ofNode(item) : this.ofCluster(cluster);
      const room = cluster === undefined ? this.sizeOf(item).width - NODE_MARGIN : WIDEST;
      const isKernel = cluster?.type === "kernel";
      label = {
        title: this.shortened(title, true, WIDEST, isKernel),
        sub: this.shortened(sub, false, room, this.colours.mode === "kernel"),
      };
      this.labels.set(item, label);
    }
    return label;
  }

  /**
   * The size of a box that is not open. It does not depend on the colours, so that these can change and nothing
   * moves.
   */
  sizeOf(item: number): Size {
    const cluster = this.forest.clusters[item - this.model.count];
    const { title, sub } = cluster === undefined ? this.ofNode(item) : this.ofCluster(cluster);
    const second = cluster === undefined ? this.model.shape(item) : sub;
    const margin = (cluster === undefined ? NODE_MARGIN : CLUSTER_MARGIN) + (this.model.compared ? 14 : 0);
    const width = Math.max(this.widthOf(title, true), this.widthOf(second, false));
    return {
      width: Math.ceil(Math.max(Math.min(width, WIDEST) + margin, NARROWEST)),
      height: cluster === undefined ? NODE_HEIGHT : CLUSTER_HEIGHT,
    };
  }

  widthOf(text: string, isTitle: boolean): number {
    const font = isTitle ? `600 12px ${this.theme.sans}` : `10.5px ${this.theme.mono}`;
    const key = `${font}|${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.measure.font = font;
      width = this.measure.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /** As much of a name as has room, and its width, both at a size of its letters. */
  within(text: string, room: number, size: number): string {
    const units = Math.floor((room * 12) / size);
    const key = `${units}|${text}`; // It is asked for in each frame.
    const known = this.cut.get(key) ?? this.shortened(text, true, units);
    this.cut.set(key, known);
    return known;
  }

  widthIn(text: string, size: number): number {
    return (this.widthOf(text, true) * size) / 12;
  }

  /** How many nodes of a cluster have each of the colours. */
  composition(item: number): number[] {
    let counts = this.compositions.get(item);
    if (counts === undefined) {
      const cluster = this.forest.clusters[item - this.model.count];
      counts = cluster === undefined ? [] : composition(this.colours, this.nodesOf(cluster));
      this.compositions.set(item, counts);
    }
    return counts;
  }

  /** Whether a node uses something outside its cluster, or is used there. */
  outside(node: number): { isFed: boolean; isRead: boolean } {
    const home = this.forest.home[node];
    const isOut = (other: number): boolean => {
      const place = this.forest.place[other] ?? -1;
      return home !== undefined && place >= 0 && (place < home.first || place >= home.last);
    };
    return { isFed: this.model.inputs(node).some(isOut), isRead: this.model.users(node).some(isOut) };
  }

  nodesOf(cluster: Cluster): Uint32Array {
    return this.forest.order.subarray(cluster.first, cluster.last);
  }

  private ofNode(node: number): Label {
    const title = this.model.kind(node) === PLACEHOLDER ? inputName(this.model.name(node)) : this.model.title(node);
    return { title, sub: this.colours.text(node) };
  }

  private ofCluster(cluster: Cluster): Label {
    const states = this.model.compared ? changeWords(statesOf(this.model, this.nodesOf(cluster))) : "";
    const what = cluster.type === "part" ? this.partOf(cluster) : cluster.type === "kernel" ? "" : cluster.type;
    const nodes = units.count(cluster.last - cluster.first, "node");
    return { title: cluster.name, sub: [what, nodes, states].filter((part) => part !== "").join(" · ") };
  }

  /** The operations that a run of neighbours has most of. */
  private partOf(cluster: Cluster): string {
    const counts = new Map<string, number>();
    for (const node of this.nodesOf(cluster).subarray(0, 400)) {
      const title = this.model.title(node);
      counts.set(title, (counts.get(title) ?? 0) + 1);
    }
    const most = [...counts].sort((left, right) => right[1] - left[1]).slice(0, 2);
    return most.map(([title]) => title).join(", ");
  }

  /** Names of kernels differ at their end. */
  private shortened(text: string, isTitle: boolean, room: number, keepsEnd = false): string {
    if (this.widthOf(text, isTitle) <= room) {
      return text;
    }
    const cut = (length: number): string => (keepsEnd ? `…${text.slice(-length)}` : `${text.slice(0, length)}…`);
    let [low, high] = [1, text.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.measured(cut(middle), isTitle) <= room) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return cut(low);
  }

  private measured(text: string, isTitle: boolean): number {
    this.measure.font = isTitle ? `600 12px ${this.theme.sans}` : `10.5px ${this.theme.mono}`;
    return this.measure.measureText(text).width;
  }
}

/** Dynamo's names of parameters are whole paths; what tells them apart is at the end. */
export function inputName(name: string): string {
  const parts = name.replace(new RegExp(INPUT_SCOPE), "").split(new RegExp(INPUT_PATH));
  return parts.length > 1 ? (parts.at(-1) ?? name).replace(/_$/, "") : name;
}
