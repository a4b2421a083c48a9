/** A value as a picture, in a value session that is stopped: heat map, histogram, statistics, and slices of more dimensions. */

import { announce, button, h, s, select } from "../dom";
import type { Subject } from "../messages";
import { Loader, notice, type View } from "../view";
import { heatmap, numberOf, type Heatmap } from "./heatmap";
import { MARKS } from "./scale";

type Told = number | string | null;

/** What `irscopePicture` answers (docs/DEBUGGER.md); laid out in irscope/values/picture.py. */
export interface Picture {
  shape: number[];
  dtype: string;
  rows: number;
  columns: number;
  index: number[];
  window: [top: number, left: number, bottom: number, right: number];
  size: [rows: number, columns: number];
  extent: [rows: number, columns: number];
  cell: "mean" | "largest";
  cells: Told[];
  nan: number[];
  posinf: number[];
  neginf: number[];
  statistics: Record<"count" | "min" | "max" | "mean" | "std" | "nan" | "posinf" | "neginf" | "zeros", Told>;
  histogram: { from: Told; to: Told; counts: number[] } | null;
}

interface Answer {
  expression: string;
  node: string;
  stage: string;
  compared: string[];
  picture: Picture;
}

/** What is asked for of the picture. */
interface Wish {
  rows?: number;
  columns?: number;
  index?: number[];
  window?: number[];
  cell?: "mean" | "largest";
}

const COMPARED = [
  { value: "value", text: "Value" },
  { value: "compiled", text: "Compiled" },
  { value: "eager", text: "Eager" },
  { value: "float64", text: "float64" },
  { value: "compiled - float64", text: "Compiled − float64" },
  { value: "eager - float64", text: "Eager − float64" },
  { value: "compiled - eager", text: "Compiled − eager" },
];

export function createValues(): View {
  const toolbar = h("div", { class: "toolbar", attributes: { role: "group", "aria-label": "What is shown" } });
  const body = h("div", { class: "body values-body" });
  const element = h("section", { class: "view values-view", attributes: { "aria-label": "Value" } }, toolbar, body);
  const readout = h("p", { class: "readout code", attributes: { role: "status", "aria-live": "polite" } });
  let subject: Subject | undefined;
  let expression = "value";
  let wish: Wish = {};
  let map: Heatmap | undefined;
  let cell: [number, number] = [0, 0];
  let isZoomed = false;
  let back = "";
  const loader = new Loader<Answer>(body, "the value", draw);

  function load(): void {
    void loader.load("irscope/picture", { expression, view: wish });
  }

  function ask(changes: Wish, focus = ""): void {
    wish = { ...wish, ...changes };
    back = focus;
    load();
  }

  function look(wanted: string): void {
    expression = wanted.trim() === "" ? "value" : wanted.trim();
    wish = {};
    cell = [0, 0];
    load();
  }

  function draw(answer: Answer): void {
    const { picture } = answer;
    const theme = document.body.classList.contains("vscode-light") || isLight() ? "light" : "dark";
    const kept = isZoomed ? picture.size.map((count) => Math.floor(count / 2)) : cell;
    isZoomed = false;
    drawToolbar(answer);
    const label = `${answer.expression}, ${shapeOf(picture)}; arrow keys move, plus and minus zoom, 0 shows all`;
    map = heatmap(
      picture,
      {
        chose: (row, column) => {
          cell = [row, column];
          tell(picture, row, column);
        },
        zoom: (row, column, by) => zoom(picture, row, column, by),
        reset: () => ask({ window: [0, 0, ...picture.extent] }, ".heatmap"),
      },
      { theme, isDifference: answer.expression.includes(" - ") },
      label,
    );
    const [top, left, bottom, right] = picture.window;
    const isPart = bottom - top < picture.extent[0] || right - left < picture.extent[1];
    const size = `${picture.extent[0]} × ${picture.extent[1]}`;
    const part = isPart ? `rows ${top}–${bottom - 1}, columns ${left}–${right - 1} of ${size}` : size;
    const whole = picture.size[0] === bottom - top && picture.size[1] === right - left;
    body.replaceChildren(
      h(
        "div",
        { class: "picture-side" },
        h("div", { class: "frame" }, map.element),
        readout,
        legend(map, picture),
        h(
          "p",
          { class: "dim" },
          part,
          !whole &&
            `; a cell is the ${picture.cell === "mean" ? "mean of its elements" : "element of the largest magnitude"}`,
        ),
      ),
      h("div", { class: "facts-side" }, ...facts(answer)),
    );
    map.choose(kept[0] ?? 0, kept[1] ?? 0);
    if (back !== "") {
      element.querySelector<HTMLElement>(back)?.focus();
      back = "";
    }
  }

  function drawToolbar(answer: Answer): void {
    const { picture } = answer;
    const field = h("input", {
      class: "search",
      attributes: { type: "text", "aria-label": "Expression over the nodes of this stage", spellcheck: "false" },
      title: "An expression over the nodes of this stage: value, mm_1.abs(), value[0]",
    });
    field.value = expression;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        back = "input.search";
        look(field.value);
      }
    });
    const known = COMPARED.some(({ value }) => value === expression);
    const compared = select(
      "Compare",
      known ? COMPARED : [{ value: expression, text: expression }, ...COMPARED],
      expression,
      (value) => {
        back = "select[aria-label=Compare]";
        look(value);
      },
    );
    const count = Math.max(picture.shape.length, 2);
    const cells = select(
      "A cell of several elements is",
      [
        { value: "mean", text: "Mean" },
        { value: "largest", text: "Largest magnitude" },
      ],
      picture.cell,
      (value) => ask({ cell: value }, "select[aria-label='A cell of several elements is']"),
    );
    toolbar.replaceChildren(
      field,
      ...(answer.compared.length > 0 ? [compared] : []),
      ...(count > 2 ? slices(picture) : []),
      cells,
      button("Show All", () => ask({ window: [0, 0, ...picture.extent] }, ".heatmap"), {
        disabled: picture.window.join() === [0, 0, ...picture.extent].join(),
      }),
    );
  }

  /** Which dimensions are shown, and where in the others. */
  function slices(picture: Picture): HTMLElement[] {
    const dimensions = picture.shape.map((size, at) => ({ value: String(at), text: `dim ${at} (${size})` }));
    const shown = (label: string, own: "rows" | "columns", other: "rows" | "columns"): HTMLElement =>
      h(
        "label",
        { class: "slice" },
        `${label} `,
        select(label, dimensions, String(picture[own]), (value) => {
          const chosen = Number(value);
          const swapped = chosen === picture[other] ? picture[own] : picture[other];
          wish = { index: picture.index, cell: picture.cell };
          ask(
            own === "rows" ? { rows: chosen, columns: swapped } : { columns: chosen, rows: swapped },
            `select[aria-label=${label}]`,
          );
        }),
      );
    const others = picture.shape.flatMap((size, at) => {
      if (at === picture.rows || at === picture.columns) {
        return [];
      }
      const field = h("input", {
        class: "index",
        attributes: { type: "number", min: 0, max: size - 1, "aria-label": `Index of dimension ${at}, of ${size}` },
      });
      field.value = String(picture.index[at] ?? 0);
      field.addEventListener("change", () => {
        const index = picture.index.map((each, number) => (number === at ? Number(field.value) || 0 : each));
        ask({ index }, `input[aria-label^="Index of dimension ${at},"]`);
      });
      return [h("label", { class: "slice" }, `dim ${at} `, field, h("span", { class: "dim" }, ` of ${size}`))];
    });
    return [shown("Rows", "rows", "columns"), shown("Columns", "columns", "rows"), ...others];
  }

  function zoom(picture: Picture, row: number, column: number, by: number): void {
    const [top, left, bottom, right] = picture.window;
    const around = (from: number, to: number, at: number, count: number, most: number): [number, number] => {
      const size = Math.min(most, Math.max(Math.min(4, most), Math.round((to - from) / by)));
      const middle = from + ((at + 0.5) * (to - from)) / count;
      const first = Math.min(Math.max(Math.round(middle - size / 2), 0), most - size);
      return [first, first + size];
    };
    const [first, last] = around(top, bottom, row, picture.size[0], picture.extent[0]);
    const [start, end] = around(left, right, column, picture.size[1], picture.extent[1]);
    isZoomed = true;
    ask({ window: [first, start, last, end] }, ".heatmap");
  }

  function tell(picture: Picture, row: number, column: number): void {
    const at = row * picture.size[1] + column;
    const [top, left, bottom, right] = picture.window;
    const range = (from: number, to: number, number: number, count: number): string => {
      const first = from + Math.ceil((number * (to - from)) / count);
      const last = from + Math.ceil(((number + 1) * (to - from)) / count) - 1;
      return last > first ? `${first}–${last}` : String(first);
    };
    const index = picture.index.map(String);
    const rows = range(top, bottom, row, picture.size[0]);
    const columns = range(left, right, column, picture.size[1]);
    const lone = picture.shape.length < 2;
    index[picture.rows] = rows;
    index[picture.columns] = columns;
    const marks = (["nan", "posinf", "neginf"] as const).filter((name) => picture[name].includes(at));
    const value = numberOf(picture.cells[at] ?? null);
    const told = [...(value === null ? [] : [short(value)]), ...marks.map((name) => MARKS[name].name)].join(", ");
    const text = `[${picture.shape.length === 0 ? "" : lone ? columns : index.join(", ")}] = ${told}`;
    if (readout.textContent !== text) {
      readout.textContent = text;
    }
  }

  return {
    element,
    show(given) {
      subject = given;
      look(given.stage ?? expression);
    },
    refresh() {
      // Another frame: what was typed stays, as a watch does; a comparison was of the node that it was chosen at.
      const isTyped = !COMPARED.some(({ value }) => value === expression);
      look(isTyped ? expression : (subject?.stage ?? expression));
    },
    focus() {
      (map?.element ?? toolbar.querySelector<HTMLElement>("input, select"))?.focus();
    },
  };
}

function facts(answer: Answer): HTMLElement[] {
  const { picture } = answer;
  const told = picture.statistics;
  const rows: [string, Told | undefined][] = [
    ["Smallest", told.min],
    ["Largest", told.max],
    ["Mean", told.mean],
    ["Deviation", told.std],
    ["Zeros", told.zeros],
    ["NaN", told.nan],
    ["+∞", told.posinf],
    ["−∞", told.neginf],
  ];
  const of = answer.node === "" ? answer.expression : answer.node;
  announce(`${of}: ${shapeOf(picture)}, from ${tell(told.min)} to ${tell(told.max)}`);
  return [
    h("h2", { class: "code" }, answer.expression === "value" ? of : answer.expression),
    h("p", { class: "dim" }, answer.stage === "" ? "" : `${of} in ${answer.stage}`),
    h("p", { class: "code" }, shapeOf(picture)),
    h("h3", {}, picture.shape.length > 2 ? "This slice" : "Statistics"),
    h(
      "table",
      { class: "statistics" },
      h(
        "tbody",
        {},
        ...rows.map(([name, value]) =>
          h(
            "tr",
            { class: ["NaN", "+∞", "−∞"].includes(name) && value !== 0 ? "alarming" : "" },
            h("th", { attributes: { scope: "row" } }, name),
            h("td", { class: "number code" }, tell(value ?? null)),
          ),
        ),
      ),
    ),
    h("h3", {}, "Histogram"),
    histogram(picture),
  ];
}

function histogram({ histogram: found }: Picture): HTMLElement {
  if (found === null) {
    return notice("No element is finite.");
  }
  const most = Math.max(...found.counts);
  const bars = found.counts.map((count, at) =>
    s("rect", {
      x: at,
      width: 0.9,
      // Square roots, so that a few outliers can still be seen.
      y: 30 * (1 - Math.sqrt(count / most)),
      height: Math.max(30 * Math.sqrt(count / most), count > 0 ? 0.4 : 0),
    }),
  );
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
      ...bars,
    ),
    h("figcaption", { class: "axis dim" }, h("span", {}, from), h("span", {}, "√ count"), h("span", {}, to)),
  );
}

function legend({ scale }: Heatmap, picture: Picture): HTMLElement {
  const marks = (["nan", "posinf", "neginf"] as const).filter((name) => picture[name].length > 0);
  return h(
    "div",
    { class: "scale-legend" },
    h("span", { class: "code" }, short(scale.low)),
    h("span", { class: "bar", style: { background: scale.gradient }, attributes: { "aria-hidden": true } }),
    h("span", { class: "code" }, short(scale.high)),
    ...marks.map((name) =>
      h(
        "span",
        { class: "not-finite" },
        h("span", { class: "sign", style: { background: `rgb(${MARKS[name].rgb.join(" ")})` } }, MARKS[name].sign),
        MARKS[name].name,
      ),
    ),
  );
}

function shapeOf({ dtype, shape }: Picture): string {
  return `${dtype}[${shape.join(", ")}]`;
}

function tell(value: Told): string {
  return value === null ? "–" : typeof value === "string" ? value : short(value);
}

function short(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e7 ? String(value) : String(Number(value.toPrecision(5)));
}

/** Outside of VS Code, and in its high contrast themes, the background tells. */
function isLight(): boolean {
  const parts =
    getComputedStyle(document.body)
      .backgroundColor.match(/[\d.]+/g)
      ?.map(Number) ?? [];
  const [red = 0, green = 0, blue = 0] = parts;
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
}
