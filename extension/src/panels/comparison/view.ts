/** What several pipelines made of one script: a table with a column for each, and lists with links to the stages of each. */

import * as units from "../../units";
import * as bridge from "../bridge";
import { button, h, rich } from "../dom";
import type { ComparedPipeline, ComparedPlace, Comparison } from "../results";
import { fileName } from "../text";
import { notice, placeLink, RunView, type View } from "../view";
import { hasFigures, placesOf, rowsOf, stagesOf, type Cell, type Row } from "./model";

export function create(): View {
  return new ComparisonView();
}

class ComparisonView extends RunView<Comparison> {
  constructor() {
    super("irscope/comparison", "the comparison", "scroll");
  }

  protected override draw({ script, pipelines, reason }: Comparison): void {
    this.toolbar.replaceChildren();
    if (pipelines.length === 0) {
      this.body.replaceChildren(notice("Nothing is compared yet.", reason, compareButton("primary")));
      return;
    }
    const again = compareButton("");
    this.toolbar.append(
      h("span", { class: "summary" }, `Pipelines of ${fileName(script)}, side by side`),
      ...(again === undefined ? [] : [again]),
    );
    this.body.replaceChildren(
      ...problems(pipelines),
      ...table(pipelines.filter(hasFigures)),
      ...lists("Not in the last stage", pipelines, ({ gone }) => places(gone)),
      ...lists("Left behind", pipelines, ({ left }) => places(left)),
      ...lists("Stages", pipelines, stages),
    );
  }
}

/** Only an editor can run a file. */
function compareButton(kind: string): HTMLElement | undefined {
  return bridge.inEditor
    ? button("Compare Pipelines…", () => bridge.post({ type: "comparePipelines" }), { class: kind })
    : undefined;
}

/** Above the table, whose columns may be out of sight. */
function problems(pipelines: ComparedPipeline[]): HTMLElement[] {
  return pipelines
    .filter(({ problem }) => problem !== "")
    .map(({ pipeline, problem }) => h("p", { class: "problem" }, h("b", {}, `${pipeline} failed. `), ...rich(problem)));
}

/** More columns than these do not fit into a narrow view: each row is a list there. */
const FEW = 3;

function table(pipelines: ComparedPipeline[]): HTMLElement[] {
  if (pipelines.length === 0) {
    return [];
  }
  const heads = pipelines.map(({ pipeline, title, problem }) =>
    h("th", { scope: "col", title }, pipeline, problem !== "" && h("div", { class: "failed" }, "failed")),
  );
  return [
    h(
      "table",
      { class: pipelines.length > FEW ? "comparison many" : "comparison" },
      h("caption", { class: "only-read" }, "Pipelines side by side"),
      h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
      h("tbody", {}, ...rowsOf(pipelines).map((each) => row(each, pipelines))),
    ),
  ];
}

function row({ title, isDetail, cells }: Row, pipelines: ComparedPipeline[]): HTMLElement {
  const head = h("th", { scope: "row", ...(isDetail ? { class: "detail" } : {}) }, title);
  return h("tr", {}, head, ...cells.map((each, index) => cell(each, pipelines[index]?.pipeline ?? "")));
}

/** The reason is a title for the pointer, and text for a screen reader. */
function cell({ text, why }: Cell, pipeline: string): HTMLElement {
  return why === ""
    ? h("td", { "data-pipeline": pipeline }, h("span", {}, text))
    : h(
        "td",
        { "data-pipeline": pipeline, title: why },
        h("span", { class: "explained" }, text),
        h("span", { class: "only-read" }, ` ${why}`),
      );
}

/** A heading, and below it what each pipeline has of it. */
function lists(
  title: string,
  pipelines: ComparedPipeline[],
  list: (one: ComparedPipeline) => HTMLElement[],
): HTMLElement[] {
  const parts = pipelines.flatMap((one) => {
    const items = list(one);
    return items.length === 0 ? [] : [h("section", {}, h("h3", {}, one.pipeline), ...items)];
  });
  return parts.length === 0 ? [] : [h("h2", {}, title), h("div", { class: "compared-lists" }, ...parts)];
}

function stages(pipeline: ComparedPipeline): HTMLElement[] {
  const compiles = stagesOf(pipeline).map(
    ({ heading, stages }) =>
      () =>
        h(
          "div",
          {},
          heading !== "" && h("div", { class: "dim" }, h("code", {}, heading)),
          h("ul", {}, ...stages.map(({ uri, title }) => h("li", {}, placeLink({ uri, line: 0 }, title)))),
        ),
  );
  return folded(compiles, "program");
}

function places(found: ComparedPlace[]): HTMLElement[] {
  const items = placesOf(found).map(
    ({ place: { what, why, place }, count }) =>
      () =>
        h(
          "div",
          { class: "compared-place" },
          h("code", {}, what),
          count > 1 && ` ×${count}`,
          place.uri !== "" && " ",
          place.uri !== "" && placeLink(place),
          why !== "" && h("div", { class: "dim" }, ...rich(why)),
        ),
  );
  return folded(items, "place");
}

/** What is there at once of a list; the others are made when they are asked for. */
const SHOWN = 4;

function folded(items: (() => HTMLElement)[], word: string): HTMLElement[] {
  const [shown, more] = items.length > SHOWN + 1 ? [items.slice(0, SHOWN), items.slice(SHOWN)] : [items, []];
  const first = shown.map((make) => make());
  if (more.length === 0) {
    return first;
  }
  const details = h("details", {}, h("summary", {}, `${units.count(more.length, word)} more`));
  details.addEventListener("toggle", () => details.append(...more.map((make) => make())), { once: true });
  return [...first, details];
}
