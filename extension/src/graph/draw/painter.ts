/** Draws a scene with a pen: what is in view, and as much of it as can be told apart at the zoom. */

import { ADDED, CHANGED, GONE } from "../model/model";
import type { Colouring } from "./colours";
import type { Far } from "../layout/far";
import type { Labels } from "./labels";
import { drawNames, NAME_PIXELS } from "./names";
import type { Pen } from "./pens";
import { HEADER, type Box, type Scene, type Wire } from "../layout/scene";
import { mixed, type Theme } from "./theme";

export interface View {
  /** Left top corner in the graph's units. */
  x: number;
  y: number;
  /** Pixels for one unit. */
  scale: number;
}

/** What is on top of the scene. */
export interface Marks {
  selected: Box | undefined;
  /** Boxes of what the editor's cursor is on. */
  linked: ReadonlySet<Box>;
  /** How many matches of the search are in a box; undefined: no search. */
  matches: ((box: Box) => number) | undefined;
  /** The current match of the search. */
  current: Box | undefined;
  /** Boxes that the selection uses or is used by, as far as no wire of the scene leads there. */
  far: Far[];
}

/** A title whose letters would be smaller than this many pixels is cut. */
const SMALLEST_TEXT = 6;
/** Where a second line would be smaller than this, the first has its place, too. */
const SMALLEST_SECOND = 5.5;
const LARGEST_TITLE = 24;
/** Below this zoom a box is a patch of its colour. */
const PATCHES = 0.35;
const SMALLEST_BOX = 3;
const STRIP = 5;

export class Painter {
  private readonly byWidth = new WeakMap<readonly Wire[], Wire[][]>();
  private readonly tints = new Map<string, string>();
  /** How much of a node's colour is in what it is filled with. */
  private tint = 0;
  /** Clusters in view whose names are drawn over the picture. */
  private small: Box[] = [];

  constructor(
    public theme: Theme,
    public labels: Labels,
    public colours: Colouring,
  ) {}

  /** A part of the scene; without `seen` all of it, in full detail. */
  draw(
    pen: Pen,
    scene: Scene,
    marks: Marks,
    scale: number,
    seen?: { x: number; y: number; width: number; height: number },
  ): void {
    this.tints.clear();
    const isFar = seen !== undefined && scale < PATCHES;
    this.tint = (this.theme.lightness === "dark" ? 0.16 : 0.12) * (isFar ? 2.5 : 1);
    this.small = [];
    this.inside(pen, scene.root, marks, scale, seen);
    drawNames(pen, this.small, this.labels, this.theme, scale);
    this.selection(pen, marks, scale);
  }

  /** Whether a cluster's name is drawn over the picture, since its own letters would be too small. */
  private isSmall(box: Box, scale: number): boolean {
    const isSmall = 12 * scale < NAME_PIXELS;
    if (isSmall) {
      this.small.push(box);
    }
    return isSmall;
  }

  /** The one colour that says most of a box. */
  colourOf(box: Box): string {
    const counts = box.cluster === undefined ? undefined : this.labels.composition(box.item);
    const most = counts === undefined ? this.colours.of(box.item) : counts.indexOf(Math.max(...counts, 1));
    return this.colours.swatches[most]?.colour ?? this.theme.muted;
  }

  private inside(
    pen: Pen,
    parent: Box,
    marks: Marks,
    scale: number,
    seen: { x: number; y: number; width: number; height: number } | undefined,
  ): void {
    if (parent.wires.length > 0 && scale > 0.03) {
      const strokes = [1, 1.8, 2.8];
      this.widths(parent.wires).forEach((wires, at) => {
        if (wires.length > 0) {
          pen.wires(wires, this.theme.wire, Math.max(strokes[at] ?? 1, 0.5 / scale), scale > 0.3);
        }
      });
    }
    for (const box of parent.children) {
      if (
        seen === undefined ||
        (box.x < seen.x + seen.width &&
          box.x + box.width > seen.x &&
          box.y < seen.y + seen.height &&
          box.y + box.height > seen.y)
      ) {
        const dim = marks.matches !== undefined && marks.matches(box) === 0;
        if (dim) {
          pen.opacity(0.38);
        }
        if (box.height * scale < SMALLEST_BOX) {
          pen.rect(box.x, box.y, box.width, box.height, 0, { fill: this.fill(box) });
        } else if (box.isOpen) {
          this.openCluster(pen, box, scale);
          pen.opacity(1);
          this.inside(pen, box, marks, scale, seen);
        } else if (box.cluster !== undefined) {
          this.closedCluster(pen, box, scale);
        } else {
          this.node(pen, box, scale);
        }
        pen.opacity(1);
        this.outline(pen, box, marks, scale);
      }
    }
  }

  /** Wires by how many edges they represent: one, some, many. */
  private widths(wires: readonly Wire[]): Wire[][] {
    let sorted = this.byWidth.get(wires);
    if (sorted === undefined) {
      sorted = [[], [], []];
      for (const wire of wires) {
        sorted[wire.count < 4 ? 0 : wire.count < 20 ? 1 : 2]?.push(wire);
      }
      this.byWidth.set(wires, sorted);
    }
    return sorted;
  }

  private openCluster(pen: Pen, box: Box, scale: number): void {
    const { theme, labels } = this;
    const depth = (box.cluster?.depth ?? 0) % 2;
    pen.rect(box.x, box.y, box.width, box.height, 7, {
      fill: depth === 1 ? theme.cluster : theme.background,
      stroke: theme.clusterBorder,
      width: Math.max(1, 0.7 / scale),
    });
    if (!this.isSmall(box, scale)) {
      const { title, sub } = labels.of(box.item);
      this.chevron(pen, box.x + 12, box.y + HEADER / 2 + 1, true);
      pen.text(title, box.x + 24, box.y + HEADER / 2 + 5, {
        size: 12,
        colour: theme.ink,
        font: theme.sans,
        bold: true,
      });
      const room = box.width - labels.widthOf(title, true) - 40;
      if (labels.widthOf(sub, false) < room) {
        const x = box.x + box.width - 10;
        pen.text(sub, x, box.y + HEADER / 2 + 5, { size: 11, colour: theme.muted, font: theme.sans, align: "right" });
      }
    }
  }

  private closedCluster(pen: Pen, box: Box, scale: number): void {
    const { theme, labels } = this;
    const { x, y, width, height } = box;
    const line = { stroke: theme.clusterBorder, width: Math.max(1, 0.7 / scale) };
    if (scale > 0.3) {
      // Two edges of what lies behind: there is more in it than one node.
      pen.rect(x + 6, y + height - 8, width - 12, 12, 5, { fill: theme.cluster, ...line });
      pen.rect(x + 3, y + height - 10, width - 6, 12, 5, { fill: theme.cluster, ...line });
    }
    pen.rect(x, y, width, height, 6, {
      fill: mixed(theme.cluster, theme.ink, theme.isHighContrast ? 0 : 0.05),
      ...line,
    });
    if (!this.isSmall(box, scale)) {
      const { title, sub } = labels.of(box.item);
      this.chevron(pen, x + 12, y + 15, false);
      pen.text(title, x + 24, y + 19, { size: 12, colour: theme.ink, font: theme.sans, bold: true });
      pen.text(sub, x + 24, y + 34, { size: 10.5, colour: theme.muted, font: theme.sans });
    }
    this.parts(pen, box);
  }

  /** The parts of a closed cluster, as a bar of the colours. */
  private parts(pen: Pen, box: Box): void {
    const counts = this.labels.composition(box.item);
    const all = box.cluster === undefined ? 0 : box.cluster.last - box.cluster.first;
    let x = box.x + 8;
    const room = box.width - 16;
    counts.forEach((count, at) => {
      const width = all === 0 ? 0 : (count / all) * room;
      if (width > 0) {
        pen.rect(x, box.y + box.height - 8, width, 4, 0, { fill: this.colours.swatches[at]?.colour });
        x += width;
      }
    });
  }

  private node(pen: Pen, box: Box, scale: number): void {
    const { theme, labels } = this;
    const { x, y, width, height } = box;
    const state = labels.model.state(box.item);
    const swatch = this.colours.swatches[this.colours.of(box.item)];
    const isTold = this.colours.mode === "change" && swatch !== undefined;
    pen.rect(x, y, width, height, 4, {
      fill: this.fill(box),
      stroke: isTold ? swatch.colour : theme.border,
      width: isTold ? 1.6 : Math.max(1, 0.6 / scale),
      dash: state === GONE ? [5, 3] : undefined,
    });
    if (swatch !== undefined) {
      pen.rect(x + 1, y + 3, STRIP - 1, height - 6, 0, { fill: swatch.colour });
    }
    this.stubs(pen, box, scale);
    if (10 * scale < SMALLEST_SECOND) {
      this.soleTitle(pen, box, scale, 9, height);
    } else {
      const { title, sub } = labels.of(box.item);
      const middle = sub === "" ? y + height / 2 + 4 : y + 16;
      pen.text(title, x + 11, middle, { size: 12, colour: theme.ink, font: theme.sans, bold: true });
      if (sub !== "") {
        pen.text(sub, x + 11, y + 30, { size: 10, colour: theme.muted, font: theme.mono });
      }
      const sign = { [ADDED]: "+", [GONE]: "−", [CHANGED]: "~" }[state];
      if (sign !== undefined) {
        const colour = swatch?.colour ?? theme.ink;
        pen.text(sign, x + width - 8, y + 16, { size: 15, colour, font: theme.sans, bold: true, align: "right" });
      }
    }
  }

  /** From afar the title alone, as large as the box has room for. */
  private soleTitle(pen: Pen, box: Box, scale: number, indent: number, height: number): void {
    const { theme, labels } = this;
    const { title } = labels.of(box.item);
    const room = box.width - indent - 6;
    const whole = Math.min(LARGEST_TITLE, (12 * room) / Math.max(labels.widthOf(title, true), 1));
    const size = Math.max(12, whole, SMALLEST_TEXT / scale);
    if (size <= height) {
      const base = box.y + height / 2 + size * 0.36;
      const text = labels.within(title, room, size);
      pen.text(text, box.x + indent, base, { size, colour: theme.ink, font: theme.sans, bold: true });
    }
  }

  /** Short lines where something comes from, or goes, outside the cluster. */
  private stubs(pen: Pen, box: Box, scale: number): void {
    if (scale > 0.3 && box.cluster === undefined) {
      const { isFed, isRead } = this.labels.outside(box.item);
      const middle = box.x + box.width - 14;
      if (isFed) {
        pen.polygon([middle - 3, box.y - 6, middle + 3, box.y - 6, middle, box.y - 1], this.theme.wire);
      }
      if (isRead) {
        const bottom = box.y + box.height;
        pen.polygon([middle - 3, bottom + 1, middle + 3, bottom + 1, middle, bottom + 6], this.theme.wire);
      }
    }
  }

  private chevron(pen: Pen, x: number, y: number, isOpen: boolean): void {
    const points = isOpen ? [x - 4, y - 3, x + 4, y - 3, x, y + 3] : [x - 3, y - 4, x - 3, y + 4, x + 3, y];
    pen.polygon(points, this.theme.muted);
  }

  private fill(box: Box): string {
    const { theme } = this;
    const counts = box.cluster === undefined ? undefined : this.labels.composition(box.item);
    const most = counts === undefined ? this.colours.of(box.item) : counts.indexOf(Math.max(...counts, 0));
    const colour = this.colours.swatches[most]?.colour;
    if (colour === undefined || theme.isHighContrast) {
      return theme.node;
    }
    let tint = this.tints.get(colour);
    if (tint === undefined) {
      tint = mixed(theme.node, colour, this.tint);
      this.tints.set(colour, tint);
    }
    return tint;
  }

  private outline(pen: Pen, box: Box, marks: Marks, scale: number): void {
    const { theme } = this;
    const pixel = 1 / Math.min(scale, 1);
    if (marks.linked.has(box)) {
      const shape = { stroke: theme.linked, width: 2 * pixel, dash: [6 * pixel, 3 * pixel] };
      pen.rect(box.x - 3 * pixel, box.y - 3 * pixel, box.width + 6 * pixel, box.height + 6 * pixel, 6, shape);
    }
    if (marks.matches !== undefined && !box.isOpen && marks.matches(box) > 0) {
      const shape = { stroke: theme.match, width: (box === marks.current ? 3 : 1.6) * pixel };
      pen.rect(box.x - 1, box.y - 1, box.width + 2, box.height + 2, 5, shape);
    }
  }

  /** The selection, with its wires drawn once more and lines to what it uses elsewhere. */
  private selection(pen: Pen, marks: Marks, scale: number): void {
    const box = marks.selected;
    if (box === undefined) {
      return;
    }
    const { theme } = this;
    const pixel = 1 / Math.min(scale, 1);
    const own = box.parent?.wires.filter(({ from, to }) => from === box || to === box) ?? [];
    pen.wires(own, theme.focus, 2 * pixel, scale > 0.3);
    for (const { box: other, kind } of marks.far) {
      if (kind === "apart") {
        this.apart(pen, box, other, pixel);
        continue;
      }
      const [from, to] = kind === "input" ? [other, box] : [box, other];
      const [x1, y1] = [from.x + from.width / 2, from.y + (from.isOpen ? HEADER : from.height)];
      const [x2, y2] = [to.x + to.width / 2, to.y];
      const bend = Math.min(Math.max(Math.abs(y2 - y1) / 3, 24), 160);
      pen.curve([x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2], theme.focus, 1.4 * pixel, [4 * pixel, 3 * pixel]);
    }
    const shape = { stroke: theme.focus, width: 2.5 * pixel };
    pen.rect(box.x - 2, box.y - 2, box.width + 4, box.height + 4, 6, shape);
  }

  /** A straight line with a bar across: two that were not fused. */
  private apart(pen: Pen, box: Box, other: Box, pixel: number): void {
    const { apart } = this.theme;
    const [x1, y1] = towards(box, other);
    const [x2, y2] = towards(other, box);
    const length = Math.max(Math.hypot(x2 - x1, y2 - y1), 1);
    const [x, y, half] = [(x1 + x2) / 2, (y1 + y2) / 2, 6 * pixel];
    const [dx, dy] = [(-(y2 - y1) / length) * half, ((x2 - x1) / length) * half];
    pen.curve([x1, y1, x1, y1, x2, y2, x2, y2], apart, 1.4 * pixel, [2 * pixel, 3 * pixel]);
    pen.curve([x - dx, y - dy, x - dx, y - dy, x + dx, y + dy, x + dx, y + dy], apart, 2 * pixel);
    pen.rect(other.x - pixel, other.y - pixel, other.width + 2 * pixel, other.height + 2 * pixel, 5, {
      stroke: apart,
      width: 1.4 * pixel,
      dash: [2 * pixel, 3 * pixel],
    });
  }
}

/** Where a line from the middle of a box to that of another leaves it; of an open cluster its head counts. */
function towards(box: Box, other: Box): [x: number, y: number] {
  const [width, height] = [box.width, box.isOpen ? HEADER : box.height];
  const [x, y] = [box.x + width / 2, box.y + height / 2];
  const [dx, dy] = [other.x + other.width / 2 - x, other.y + (other.isOpen ? HEADER : other.height) / 2 - y];
  const part = Math.min(width / 2 / Math.max(Math.abs(dx), 1), height / 2 / Math.max(Math.abs(dy), 1), 1);
  return [x + dx * part, y + dy * part];
}
