/** A run on one page: how it went, what to do first, and what was compiled. */

import * as bridge from "../bridge";
import { h, rich } from "../dom";
import { TreeTable } from "../measures/table";
import type { Summary } from "../results";
import * as units from "../../units";
import { placeLink, runButton, RunView, type View } from "../view";

export function create(): View {
  return new SummaryView();
}

class SummaryView extends RunView<Summary> {
  private readonly tree = new TreeTable("What was compiled", "Compiled");

  constructor() {
    super("irscope/summary", "the summary", "scroll summary-body");
  }

  protected override draw({ standing, facts, causes, moreCauses, compiled }: Summary): void {
    this.tree.take(compiled);
    const more = moreCauses > 0 && h("p", { class: "dim" }, `${units.count(moreCauses, "more cause")} in Findings.`);
    const items = causes.map(({ title, message, place, cost }) =>
      h(
        "li",
        {},
        h("p", {}, ...rich(message)),
        h("p", { class: "dim" }, placeLink(place), ` ${[title, cost].filter((text) => text !== "").join(" · ")}`),
      ),
    );
    this.body.replaceChildren(
      h("p", { class: "standing", role: "status" }, ...rich(standing)),
      h("p", { class: "dim" }, facts.join(" · ")),
      ...(items.length > 0 ? [h("h3", {}, "What to do first"), h("ol", { class: "causes" }, ...items)] : []),
      ...(more === false ? [] : [more]),
      ...(compiled.rows.length > 1 ? [h("h3", {}, "What was compiled"), this.tree.element] : []),
      ...(compiled.rows.length > 1 || !bridge.inEditor ? [] : [runButton() ?? h("span", {})]),
    );
  }
}
