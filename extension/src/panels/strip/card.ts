/** One stage in the strip. */

import { h } from "../dom";
import type { PipelineStage } from "../results";
import * as units from "../../units";
import { cardOf, type Row } from "./model";

export function cardElement(stage: PipelineStage, row: Row): HTMLElement {
  const { kind, facts, rows, share, side } = cardOf(stage, row);
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
      style: { "grid-column": String(stage.column + 1), "grid-row": rows, "--share": share.toFixed(3) },
    },
    h("span", { class: "card-title" }, stage.short),
    h("span", { class: "only-read" }, ", "),
    h("span", { class: "card-facts" }, facts.join(" · ")),
    h("span", { class: "only-read" }, ", "),
    h(
      "span",
      { class: "card-passes" },
      side === "" ? "" : `${side} `,
      changed > 0 && units.count(changed, "pass"),
      changed > 0 && h("span", { class: "only-read" }, " changed it"),
    ),
    h("span", { class: "card-hits" }),
  );
}
