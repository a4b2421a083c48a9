/** One stage in the strip. */

import { h } from "../dom";
import type { PipelineStage } from "../results";
import * as units from "../../units";
import { cardOf, type Row } from "./model";

export function cardElement(stage: PipelineStage, row: Row): HTMLElement {
  const { kind, facts, share, side } = cardOf(stage, row);
  const changed = stage.passes.length;
  return h(
    "div",
    {
      class: `card of-${kind}${stage.column === 0 ? " first" : ""}`,
      tabindex: -1,
      title: `${stage.title}\n${facts.join(", ")}, ${units.size(stage.bytes)}`,
      role: "option",
      "aria-selected": "false",
      "data-stage": stage.stage,
      "data-track": stage.track,
      style: { "--share": share.toFixed(3) },
    },
    h("span", { class: "card-title" }, stage.short),
    listed("card-facts", facts),
    listed("card-passes", [side, changed > 0 ? units.count(changed, "pass") : ""]),
    changed > 0 && h("span", { class: "only-read" }, " changed it"),
    h("span", { class: "card-hits" }),
  );
}

/** Facts of which none is broken over lines, unless it is wider than the card; a screen reader pauses before each. */
function listed(name: string, facts: string[]): HTMLElement {
  const known = facts.filter((fact) => fact !== "");
  return h("span", { class: name }, ...known.map((fact) => h("span", {}, comma(), fact)));
}

function comma(): HTMLElement {
  return h("span", { class: "only-read" }, ", ");
}
