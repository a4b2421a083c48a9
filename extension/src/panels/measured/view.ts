/** Measured time: modules and call frames as trees and as flame graphs, tables of lines, of kernels and of what is between kernels, and
 * one step as a flame chart. */

import * as bridge from "../bridge";
import { button, h, rich } from "../dom";
import type { Measured, ProgramTime } from "../results";
import { notice, placeLink, RunView, type View } from "../view";
import * as units from "../../units";
import { FlameChart } from "../measures/chart";
import type { Box } from "../measures/box";
import {
  COLUMNS,
  gapRows,
  GAP_COLUMNS,
  costTexts,
  graphTexts,
  KERNEL_COLUMNS,
  kernelRows,
  lineRows,
  summary,
} from "./model";
import { groupOf, GROUPS, spoken, stepBoxes, titleOf, type StepBox } from "./step";
import { rowElement, tableElement } from "../measures/table";
import { pathBoxes, type Row } from "../measures/tree";
import { TreeView } from "../measures/treeView";

const PARTS = ["Modules", "Frames", "Lines", "Kernels", "Between Kernels", "Step"] as const;
type Part = (typeof PARTS)[number];

/** More programs, costs and so on are folded: the table is what one looks for. */
const MOST_FACTS = 3;

interface Remembered {
  measuredPart?: Part;
}

/** What the rows of each part are, and where the answer says how many of them it has not. */
const NOUNS = { Lines: "line", Kernels: "kernel", "Between Kernels": "row", Modules: "module", Frames: "call" };
const LEFT_OUT = { Lines: "lines", Kernels: "kernels", "Between Kernels": "gaps" } as const;

export function create(): View {
  return new MeasuredView();
}

class MeasuredView extends RunView<Measured> {
  private readonly chart = new FlameChart(
    { label: "One step", noun: ["piece", "pieces"], classOf: groupOf, titleOf, spoken, told },
    this.body,
  );
  private readonly trees = {
    Modules: new TreeView({ title: "Time of modules", noun: ["module", "modules"] }),
    Frames: new TreeView({ title: "Time of frames", noun: ["frame", "frames"] }),
  };
  private part: Part = bridge.recall<Remembered>().measuredPart ?? "Lines";

  constructor() {
    super("irscope/measured", "the measured time", "measured-body");
  }

  protected override draw(data: Measured): void {
    if (data.reason !== "") {
      this.toolbar.replaceChildren();
      this.body.replaceChildren(notice("No measured time to show.", data.reason, profileButton("primary")));
      return;
    }
    this.toolbar.replaceChildren(
      h("strong", {}, `${units.duration(data.step)} a step`),
      ...summary(data).map((text) => h("span", { class: "dim" }, text)),
      h("span", { class: "spacer" }),
      h("span", { class: "parts" }, ...PARTS.map((part) => this.partButton(part, data))),
    );
    const facts = factsOf(data);
    this.body.classList.remove("with-chart");
    if (this.part === "Step") {
      this.drawStep(data);
    } else if (this.part === "Modules" || this.part === "Frames") {
      this.drawTree(data, this.part);
    } else {
      this.body.replaceChildren(h("div", { class: "scroll" }, ...facts, ...tableOf(this.part, data)));
    }
  }

  private partButton(part: Part, data: Measured): HTMLElement {
    const choose = (): void => {
      this.part = part;
      bridge.remember<Remembered>({ measuredPart: part });
      this.draw(data);
      this.element.querySelector<HTMLElement>(`[data-part="${part}"]`)?.focus();
    };
    return button(part, choose, { class: "toggle", "data-part": part, "aria-pressed": this.part === part });
  }

  private drawStep(data: Measured): void {
    if (data.pieces.length === 0) {
      this.body.replaceChildren(notice("No step to show.", "This profile was made by an older version of irscope."));
      return;
    }
    const { search, found, zoomOut, elements } = this.chart;
    const legend = GROUPS.map(({ group, title }) => h("span", { class: `key ${group}` }, title));
    this.body.classList.add("with-chart");
    this.body.replaceChildren(
      h(
        "div",
        { class: "measure-bar" },
        search,
        found,
        h("span", { class: "legend" }, ...legend),
        h("span", { class: "spacer" }),
        zoomOut,
      ),
      ...elements,
    );
    this.chart.take(stepBoxes(data));
    this.chart.draw();
  }

  private drawTree(data: Measured, part: "Modules" | "Frames"): void {
    const tree = part === "Modules" ? data.modules : data.frames;
    if (pathBoxes(tree).length === 0) {
      const what = part.toLowerCase();
      this.body.replaceChildren(
        notice(
          `No ${what} to show.`,
          data.noLines === "" ? `Nothing is known about the ${what} of the kernels.` : data.noLines,
        ),
      );
      return;
    }
    const view = this.trees[part];
    const notes = [...notesOf(part, tree.leftOut, data.bounds), note(BY_MODEL)];
    this.body.replaceChildren(view.element);
    view.take(tree, { title: "% of step", whole: data.step }, notes);
    view.draw();
  }
}

const BY_MODEL = "A fused kernel is divided by a model.";
const IN_FULL = "A fused kernel counts in full for each of its lines, so together they can take more than the step.";

/** Only an editor can run a file. */
function profileButton(kind: string): HTMLElement | undefined {
  return bridge.inEditor
    ? button("Profile This File", () => bridge.post({ type: "profile" }), { class: kind })
    : undefined;
}

/** Above the tables: the programs, what became of CUDA graphs, and what breaks and recompilations take. */
function factsOf(data: Measured): HTMLElement[] {
  const programs = data.programs.map(timeOf);
  const regions =
    data.regions.length > 0 &&
    h(
      "details",
      { open: data.regions.length <= MOST_FACTS },
      h("summary", {}, `${units.count(data.regions.length, "graph")} between breaks, each called alone`),
      h("ul", {}, ...data.regions.map(timeOf)),
    );
  const graphs = graphTexts(data).map(({ text, place }) =>
    h("li", {}, "CUDA graphs: ", text, place !== undefined && " ", place !== undefined && placeLink(place)),
  );
  const costs = costTexts(data).map(({ text, place }) =>
    h("li", {}, text, place !== undefined && " ", place !== undefined && placeLink(place)),
  );
  const lists = [short(graphs, "fact"), short(programs, "program"), short(costs, "cost")];
  const shown = lists.flatMap((list) => list.shown);
  return shown.length === 0 && data.regions.length === 0
    ? []
    : [h("div", { class: "measured-facts" }, h("ul", {}, ...shown), ...lists.flatMap((list) => list.folded), regions)];
}

/** The first of a list, and the rest of it folded. */
function short(items: HTMLElement[], noun: string): { shown: HTMLElement[]; folded: HTMLElement[] } {
  if (items.length <= MOST_FACTS + 1) {
    return { shown: items, folded: [] };
  }
  const more = items.slice(MOST_FACTS);
  const summary = h("summary", {}, `${units.count(more.length, noun)} more`);
  return { shown: items.slice(0, MOST_FACTS), folded: [h("details", {}, summary, h("ul", {}, ...more))] };
}

function timeOf({ function: name, place, words, elsewhere }: ProgramTime): HTMLElement {
  const others = elsewhere.length > 0 && h("ul", {}, ...elsewhere.map((text) => h("li", {}, text)));
  const at = place.uri !== "" && placeLink(place);
  return h("li", {}, h("code", {}, name), " ", at, " ", ...rich(words), others);
}

function tableOf(part: Exclude<Part, "Step" | "Modules" | "Frames">, data: Measured): HTMLElement[] {
  const [rows, columns, first]: [Row[], string[], string] =
    part === "Lines"
      ? [lineRows(data), COLUMNS, "Line"]
      : part === "Kernels"
        ? [kernelRows(data), KERNEL_COLUMNS, "Kernel"]
        : [gapRows(data), GAP_COLUMNS, "What"];
  if (rows.length === 0) {
    const why = data.gaps.length === 0 ? "The step has none that could be told apart." : data.noLines;
    return [notice(`No ${part.toLowerCase()} to show.`, why)];
  }
  const table = tableElement(
    part,
    first,
    columns,
    rows.map((row) => rowElement(row, columns)),
  );
  const notes = notesOf(part, data.leftOut[LEFT_OUT[part]], columns.includes("Possible") ? data.bounds : "");
  return [table, ...notes, ...(part === "Lines" ? [note(IN_FULL)] : [])];
}

/** Below a table: what was left out of it, and what is possible. */
function notesOf(part: Exclude<Part, "Step">, more: number, bounds: string): HTMLElement[] {
  return [
    ...(more > 0 ? [note(`${units.count(more, NOUNS[part])} with less time not shown.`)] : []),
    ...(bounds !== "" ? [note(`Possible: ${bounds}.`)] : []),
  ];
}

function note(text: string): HTMLElement {
  return h("p", { class: "dim measured-note" }, text);
}

function told(box: Box, whole: Box): HTMLElement[] {
  const { name, label, size, place } = box as StepBox;
  return [
    h("code", {}, name),
    ...(label === "" ? [] : [h("span", {}, label)]),
    h("span", {}, h("strong", {}, units.duration(size)), ` ${units.percent(size, whole.size)} of the step`),
    ...(place === undefined ? [] : [placeLink(place)]),
  ];
}
