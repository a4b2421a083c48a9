/** What is shown of a value: the expression, what it is compared with, the dimensions, what a cell is. */

import { button, h, select } from "../dom";
import {
  COMPARED,
  cutDimensions,
  isCompared,
  isWhole,
  turned,
  wholeOf,
  type Answer,
  type Picture,
  type Wish,
} from "./model";

/** Where each has the control that gets the focus back once the answer is there, as a selector. */
export interface Asking {
  look(expression: string, focus: string): void;
  ask(changes: Wish, focus: string): void;
}

export function controls(answer: Answer, expression: string, asking: Asking): HTMLElement[] {
  const { picture } = answer;
  return [
    expressionField(expression, asking),
    ...(answer.compared.length > 0 ? [comparison(expression, asking)] : []),
    ...(picture.shape.length > 2 ? slices(picture, asking) : []),
    select(
      "A cell of several elements is",
      [
        { value: "mean", text: "Mean" },
        { value: "largest", text: "Largest magnitude" },
      ],
      picture.cell,
      (value) => asking.ask({ cell: value }, "select[aria-label='A cell of several elements is']"),
    ),
    button("Show All", () => asking.ask({ window: wholeOf(picture) }, ".heatmap"), { disabled: isWhole(picture) }),
  ];
}

function expressionField(expression: string, asking: Asking): HTMLElement {
  const field = h("input", {
    class: "search",
    type: "text",
    "aria-label": "Expression over the nodes of this stage",
    spellcheck: "false",
    title: "An expression over the nodes of this stage: value, mm_1.abs(), value[0]",
  });
  field.value = expression;
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      asking.look(field.value, "input.search");
    }
  });
  return field;
}

function comparison(expression: string, asking: Asking): HTMLElement {
  const options = isCompared(expression) ? COMPARED : [{ value: expression, text: expression }, ...COMPARED];
  return select("Compare", options, expression, (value) => asking.look(value, "select[aria-label=Compare]"));
}

/** Which dimensions are shown, and where in the others. */
function slices(picture: Picture, asking: Asking): HTMLElement[] {
  const dimensions = picture.shape.map((size, at) => ({ value: String(at), text: `dim ${at} (${size})` }));
  const shown = (label: string, own: "rows" | "columns"): HTMLElement =>
    h(
      "label",
      { class: "slice" },
      `${label} `,
      select(label, dimensions, String(picture[own]), (value) =>
        asking.ask({ ...turned(picture, own, Number(value)) }, `select[aria-label=${label}]`),
      ),
    );
  const others = cutDimensions(picture).map(({ at, size, index }) => {
    const field = h("input", {
      class: "index",
      type: "number",
      min: 0,
      max: size - 1,
      "aria-label": `Index of dimension ${at}, of ${size}`,
    });
    field.value = String(index);
    field.addEventListener("change", () => {
      const changed = picture.index.map((each, number) => (number === at ? Number(field.value) || 0 : each));
      asking.ask({ index: changed }, `input[aria-label^="Index of dimension ${at},"]`);
    });
    return h("label", { class: "slice" }, `dim ${at} `, field, h("span", { class: "dim" }, ` of ${size}`));
  });
  return [shown("Rows", "rows"), shown("Columns", "columns"), ...others];
}
