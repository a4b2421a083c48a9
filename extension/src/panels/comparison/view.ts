/** What several pipelines made of one script: a table with a column for each, and links to the stages of its run. */

import * as bridge from "../bridge";
import { button, h, rich } from "../dom";
import type { Subject } from "../messages";
import type { ComparedPipeline, ComparedPlace, Comparison } from "../results";
import { fileName } from "../text";
import { Loader, notice, placeLink, type View } from "../view";
import { placesOf, rowsOf, stagesOf, type Cell, type Row } from "./model";

export function create(): View {
  return new ComparisonView();
}

class ComparisonView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly body = h("div", { class: "body scroll" });
  readonly element = h("section", { class: "view" }, this.toolbar, this.body);
  private run = "";
  private readonly loader = new Loader<Comparison>(this.body, "the comparison", (result) => this.draw(result));

  show({ run, deep }: Subject): void {
    if ((deep ?? run) !== this.run) {
      this.run = deep ?? run;
      this.refresh();
    }
  }

  refresh(): void {
    if (this.run !== "") {
      void this.loader.load("irscope/comparison", { run: this.run });
    }
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("button")?.focus();
  }

  private draw({ script, pipelines, reason }: Comparison): void {
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
    this.body.replaceChildren(table(pipelines));
  }
}

/** Only an editor can run a file. */
function compareButton(kind: string): HTMLElement | undefined {
  return bridge.inEditor
    ? button("Compare Pipelines…", () => bridge.post({ type: "comparePipelines" }), { class: kind })
    : undefined;
}

function table(pipelines: ComparedPipeline[]): HTMLElement {
  const heads = pipelines.map(({ pipeline, title, problem }) =>
    h("th", { scope: "col", title }, pipeline, problem !== "" && h("div", { class: "problem" }, ...rich(problem))),
  );
  return h(
    "table",
    { class: "comparison" },
    h("caption", { class: "only-read" }, "Pipelines side by side"),
    h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
    h(
      "tbody",
      {},
      ...rowsOf(pipelines).map(row),
      listRow("Not in the last stage", pipelines, ({ gone }) => places(gone)),
      listRow("Left behind", pipelines, ({ left }) => places(left)),
      listRow("Stages", pipelines, stages),
    ),
  );
}

function row({ title, isDetail, cells }: Row): HTMLElement {
  const head = h("th", { scope: "row", ...(isDetail ? { class: "detail" } : {}) }, title);
  return h("tr", {}, head, ...cells.map(cell));
}

/** The reason is a title for the pointer, and text for a screen reader. */
function cell({ text, why }: Cell): HTMLElement {
  return why === ""
    ? h("td", {}, text)
    : h("td", { title: why }, h("span", { class: "explained" }, text), h("span", { class: "only-read" }, ` ${why}`));
}

function listRow(
  title: string,
  pipelines: ComparedPipeline[],
  list: (one: ComparedPipeline) => HTMLElement[],
): HTMLElement | false {
  const lists = pipelines.map(list);
  const cells = lists.map((items) => h("td", { class: "list" }, ...items));
  return lists.some((items) => items.length > 0) && h("tr", {}, h("th", { scope: "row" }, title), ...cells);
}

function stages(pipeline: ComparedPipeline): HTMLElement[] {
  return stagesOf(pipeline).flatMap(({ heading, stages }) => [
    ...(heading === "" ? [] : [h("div", { class: "dim" }, h("code", {}, heading))]),
    h("ul", {}, ...stages.map(({ uri, title }) => h("li", {}, placeLink({ uri, line: 0 }, title)))),
  ]);
}

function places(found: ComparedPlace[]): HTMLElement[] {
  const items = placesOf(found).map(({ place: { what, why, place }, count }) =>
    h(
      "li",
      {},
      h("code", {}, what),
      count > 1 && ` ×${count}`,
      place.uri !== "" && " ",
      place.uri !== "" && placeLink(place),
      why !== "" && h("div", { class: "dim" }, ...rich(why)),
    ),
  );
  return items.length === 0 ? [] : [h("ul", {}, ...items)];
}
