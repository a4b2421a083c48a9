/** What is said of a value beside its picture: statistics, histogram, and what the colours mean. */

import { h, s } from "../dom";
import { notice } from "../view";
import type { Heatmap } from "./heatmap";
import { bars, NOT_FINITE, shapeOf, short, statistics, tell, type Answer, type Picture } from "./model";
import { MARKS } from "./scale";

export function facts(answer: Answer): HTMLElement[] {
  const { picture } = answer;
  const of = answer.node === "" ? answer.expression : answer.node;
  const rows = statistics(picture).map(({ name, text, alarming }) =>
    h(
      "tr",
      { class: alarming ? "alarming" : "" },
      h("th", { scope: "row" }, name),
      h("td", { class: "number code" }, text),
    ),
  );
  return [
    h("h2", { class: "code" }, answer.expression === "value" ? of : answer.expression),
    h("p", { class: "dim" }, answer.stage === "" ? "" : `${of} in ${answer.stage}`),
    h("p", { class: "code" }, shapeOf(picture)),
    h("h3", {}, picture.shape.length > 2 ? "This slice" : "Statistics"),
    h("table", { class: "statistics" }, h("tbody", {}, ...rows)),
    h("h3", {}, "Histogram"),
    histogram(picture),
  ];
}

function histogram({ histogram: found }: Picture): HTMLElement {
  if (found === null) {
    return notice("No element is finite.");
  }
  const most = Math.max(...found.counts);
  const [from, to] = [tell(found.from), tell(found.to)];
  return h(
    "figure",
    { class: "histogram" },
    s(
      "svg",
      {
        viewBox: `0 0 ${found.counts.length} 30`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${found.counts.length} bins from ${from} to ${to}, the fullest with ${most} elements`,
      },
      ...bars(found.counts).map((bar, x) => s("rect", { x, width: 0.9, ...bar })),
    ),
    h("figcaption", { class: "axis dim" }, h("span", {}, from), h("span", {}, "√ count"), h("span", {}, to)),
  );
}

export function legend({ scale }: Heatmap, picture: Picture): HTMLElement {
  return h(
    "div",
    { class: "scale-legend" },
    h("span", { class: "code" }, short(scale.low)),
    h("span", { class: "bar", style: { background: scale.gradient }, "aria-hidden": true }),
    h("span", { class: "code" }, short(scale.high)),
    ...NOT_FINITE.filter((name) => picture[name].length > 0).map((name) =>
      h(
        "span",
        { class: "not-finite" },
        h("span", { class: "sign", style: { background: `rgb(${MARKS[name].rgb.join(" ")})` } }, MARKS[name].sign),
        MARKS[name].name,
      ),
    ),
  );
}
