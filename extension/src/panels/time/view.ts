/** Where the compile time went: a flame chart, or the same as a table; of a model that was compiled in pieces, these by size. */

import * as bridge from "../bridge";
import { button, h } from "../dom";
import type { Box } from "../measures/box";
import { TreeTable } from "../measures/table";
import type { Subject } from "../messages";
import type { Phases } from "../results";
import { Loader, notice, runButton, type View } from "../view";
import * as units from "../../units";
import { FlameChart } from "./chart";
import { layOut } from "./layout";
import { pieceTable } from "./pieces";
import { PARTS, partOf, remarks, spoken, titleOf } from "./model";

interface Remembered {
  timeThreads?: boolean;
}

type Mode = "Chart" | "Table" | "Pieces";

export function create(): View {
  return new TimeView();
}

class TimeView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly body = h("div", { class: "body time-body" });
  readonly element = h("section", { class: "view" }, this.toolbar, this.body);
  private readonly chart = new FlameChart(
    { label: "Compile time by phase", noun: ["phase", "phases"], classOf: partOf, titleOf, spoken, told },
    this.body,
  );
  private readonly table = new TreeTable("Compile time by phase", "Phase");
  private subject: Subject | undefined;
  private data: Phases | undefined;
  private boxes: Box[] = [];
  private mode: Mode = "Chart";
  private readonly loader = new Loader<Phases>(this.body, "the compile times", (result) => {
    this.data = result;
    this.boxes = layOut(result);
    this.chart.take(this.boxes);
    this.table.take(result.phases, { title: "% of All", whole: result.phases.rows[0]?.whole[0] ?? 0 });
    this.draw();
  });

  constructor() {
    this.chart.withThreads = bridge.recall<Remembered>().timeThreads ?? true;
  }

  show(given: Subject): void {
    const run = given.deep ?? given.run;
    const same = this.subject !== undefined && (this.subject.deep ?? this.subject.run) === run;
    this.subject = given;
    if (!same) {
      this.refresh();
    }
  }

  refresh(): void {
    if (this.subject !== undefined) {
      void this.loader.load("irscope/phases", { run: this.subject.deep ?? this.subject.run });
    }
  }

  focus(): void {
    (this.chart.focused ?? this.toolbar.querySelector("button"))?.focus();
  }

  private draw(): void {
    if (this.data === undefined) {
      return;
    }
    const { compiles, pieces, reason } = this.data;
    if (compiles.length === 0 && pieces.rows.length === 0) {
      this.toolbar.replaceChildren();
      this.body.replaceChildren(notice("No compile times to show.", reason, runButton()));
      return;
    }
    const modes = this.modes(this.data);
    this.mode = modes.includes(this.mode) ? this.mode : (modes[0] ?? "Chart");
    this.drawToolbar(this.data, modes);
    if (this.mode === "Pieces") {
      this.body.replaceChildren(h("div", { class: "scroll" }, pieceTable(pieces)));
    } else if (this.mode === "Table") {
      this.body.replaceChildren(h("div", { class: "scroll" }, this.table.element));
    } else {
      this.body.replaceChildren(...this.chart.elements);
      this.chart.draw();
    }
  }

  /** What there is to show. */
  private modes({ compiles, pieces }: Phases): Mode[] {
    return [
      ...(compiles.length > 0 ? (["Chart", "Table"] as const) : []),
      ...(pieces.rows.length > 0 ? (["Pieces"] as const) : []),
    ];
  }

  private drawToolbar(data: Phases, modes: Mode[]): void {
    const isChart = this.mode === "Chart";
    const legend = PARTS.map(({ part, title }) => h("span", { class: `key ${part}` }, title));
    this.toolbar.replaceChildren(
      ...(data.compiles.length === 0
        ? []
        : [
            h("strong", {}, units.duration(data.seconds)),
            h("span", { class: "dim" }, `in ${units.count(data.compiles.length, "compile")}`),
          ]),
      ...(isChart ? [this.chart.search, this.chart.found] : []),
      h("span", { class: "legend" }, ...(isChart ? legend : [])),
      h("span", { class: "spacer" }),
      ...(isChart ? [...this.threadButton(), this.chart.zoomOut] : []),
      ...modes
        .filter((mode) => mode !== this.mode)
        .map((mode) =>
          button(mode, () => {
            this.mode = mode;
            this.draw();
          }),
        ),
    );
  }

  /** Empty if one thread did all. */
  private threadButton(): HTMLElement[] {
    const { chart } = this;
    const toggle = button(
      "Other Threads",
      () => {
        chart.withThreads = !chart.withThreads;
        bridge.remember<Remembered>({ timeThreads: chart.withThreads });
        toggle.setAttribute("aria-pressed", String(chart.withThreads));
        chart.draw();
      },
      { class: "toggle key beside", title: "What ran beside the compiling thread", "aria-pressed": chart.withThreads },
    );
    return this.boxes.some(({ beside }) => beside) ? [toggle] : [];
  }
}

function told(box: Box, whole: number): HTMLElement[] {
  return [
    h("code", {}, box.name),
    ...(box.label === "" ? [] : [h("span", {}, box.label)]),
    h("span", {}, h("strong", {}, units.duration(box.seconds)), ` ${units.percent(box.seconds, whole)} of all`),
    ...remarks(box).map((text) => h("span", { class: "dim" }, text)),
  ];
}
