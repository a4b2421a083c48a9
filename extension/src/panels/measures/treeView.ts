/** A tree of measures: as a table whose rows open, or as a flame graph, with one search for both. */

import * as bridge from "../bridge";
import { button, h } from "../dom";
import type { MeasureTree } from "../results";
import { placeLink } from "../view";
import type { Box } from "./box";
import { FlameChart } from "./chart";
import { TreeTable } from "./table";
import { flameBoxes, pathFacts, pathTitle, signOf, toneOf, type PathBox, type Share } from "./tree";

export interface TreeWords {
  /** What is read aloud. */
  title: string;
  /** What the rows and boxes are, one and many of them. */
  noun: [one: string, many: string];
  /** Where other words than a name and its class are shown. */
  titleOf?: (box: Box) => string;
  /** The classes of boxes, their colours; and what they mean. */
  classOf?: (box: Box) => string;
  legend?: { tone: string; title: string }[];
  /** The flame graph is shown first. */
  isFlame?: boolean;
}

const CHANGES = [
  { tone: "more", title: "more" },
  { tone: "less", title: "less" },
];

export class TreeView {
  readonly element = h("div", { class: "measure-tree" });
  private readonly bar = h("div", { class: "measure-bar" });
  private readonly chart: FlameChart;
  private readonly table: TreeTable;
  private readonly state: string;
  private tree: MeasureTree = { measures: [], rows: [], leftOut: 0, isChange: false };
  private isFlame: boolean;
  private share: Share | undefined;
  private notes: HTMLElement[] = [];

  constructor(private readonly words: TreeWords) {
    const { title, noun, titleOf = pathTitle, classOf = toneOf } = words;
    const [one] = noun;
    this.table = new TreeTable(title, one.charAt(0).toUpperCase() + one.slice(1));
    this.chart = new FlameChart(
      {
        label: title,
        noun,
        classOf: (box) => (this.tree.isChange ? signOf(box) : classOf(box)),
        titleOf,
        spoken: (box) => [titleOf(box), ...pathFacts(this.tree, box, this.share)].join(", "),
        told: (box) => this.told(box as PathBox),
      },
      this.element,
    );
    this.chart.search.addEventListener("input", () => this.table.mark(this.chart.search.value));
    this.chart.search.addEventListener("keydown", () => this.table.mark(this.chart.search.value));
    this.state = `flame ${title}`;
    this.isFlame = bridge.recall<Record<string, boolean>>()[this.state] ?? words.isFlame ?? false;
  }

  /** @param notes what is below the table */
  take(tree: MeasureTree, share?: Share, notes: HTMLElement[] = []): void {
    this.tree = tree;
    this.share = share;
    this.notes = notes;
    this.chart.take(flameBoxes(tree), tree.measures[0]?.unit);
    this.table.take(tree, share);
  }

  /** To be called when the element is in the page: a flame graph is as wide as it. */
  draw(): void {
    const { chart, isFlame } = this;
    const legend = this.tree.isChange ? CHANGES : (this.words.legend ?? []);
    this.bar.replaceChildren(
      chart.search,
      chart.found,
      h(
        "span",
        { class: "legend" },
        ...(isFlame ? legend.map(({ tone, title }) => h("span", { class: `key ${tone}` }, title)) : []),
      ),
      h("span", { class: "spacer" }),
      ...(isFlame ? [chart.zoomOut] : []),
      button(isFlame ? "Table" : "Flame Graph", () => this.change(), { class: "other-view" }),
    );
    this.element.classList.toggle("with-chart", isFlame);
    if (isFlame) {
      this.element.replaceChildren(this.bar, ...chart.elements);
      chart.draw();
    } else {
      this.element.replaceChildren(this.bar, h("div", { class: "scroll" }, this.table.element, ...this.notes));
    }
  }

  focus(): void {
    ((this.isFlame ? this.chart.focused : null) ?? this.bar.querySelector<HTMLElement>("button"))?.focus();
  }

  /** From the table to the flame graph, and back. */
  private change(): void {
    this.isFlame = !this.isFlame;
    bridge.remember({ [this.state]: this.isFlame });
    this.draw();
    this.bar.querySelector<HTMLElement>(".other-view")?.focus();
  }

  private told(box: PathBox): HTMLElement[] {
    const [most = "", ...others] = pathFacts(this.tree, box, this.share);
    return [
      h("code", {}, box.name),
      ...(box.label === "" ? [] : [h("span", {}, box.label)]),
      h("strong", {}, most),
      ...others.map((fact) => h("span", { class: "dim" }, fact)),
      ...(box.place === undefined ? [] : [placeLink(box.place)]),
    ];
  }
}
