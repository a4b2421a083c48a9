/** The picture itself: a canvas of cells, with a cell at hand that mouse and arrow keys move. */

import { h } from "../dom";
import { numberOf, type Picture } from "./model";
import { MARKS, scaleOf, type Scale } from "./scale";

interface Listeners {
  chose(row: number, column: number): void;
  /** Looks closer at a cell (`by` above 1), or from further away. */
  zoom(row: number, column: number, by: number): void;
  reset(): void;
}

const LARGEST_CELL = 48;

export class Heatmap {
  readonly element: HTMLElement;
  readonly scale: Scale;
  private readonly mark = h("div", { class: "at-hand", "aria-hidden": true });
  private readonly rows: number;
  private readonly columns: number;
  private at: [number, number] = [0, 0];

  constructor(
    picture: Picture,
    private readonly listeners: Listeners,
    { theme, isDifference }: { theme: "dark" | "light"; isDifference: boolean },
    label: string,
  ) {
    const [rows, columns] = ([this.rows, this.columns] = picture.size);
    this.scale = scaleOf(picture.cells.map(numberOf), theme, isDifference);
    const canvas = h("canvas", { class: "cells", width: columns, height: rows, "aria-hidden": true });
    paint(canvas, picture, this.scale);
    this.element = h(
      "div",
      {
        class: "heatmap",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "heat map",
        "aria-label": label,
        style: { "--rows": String(rows), "--columns": String(columns), "--largest": `${LARGEST_CELL}px` },
      },
      canvas,
      h("div", { class: "signs", "aria-hidden": true }, ...signsOf(picture)),
      this.mark,
    );
    this.element.addEventListener("pointermove", (event) => this.choose(...this.under(event)));
    this.element.addEventListener("dblclick", (event) => {
      listeners.zoom(...this.under(event), event.shiftKey ? 0.5 : 2);
    });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Puts the cell at hand somewhere. */
  choose(row: number, column: number): void {
    const { rows, columns, mark } = this;
    this.at = [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)];
    mark.style.setProperty("left", `${(100 * this.at[1]) / columns}%`);
    mark.style.setProperty("top", `${(100 * this.at[0]) / rows}%`);
    mark.style.setProperty("width", `${100 / columns}%`);
    mark.style.setProperty("height", `${100 / rows}%`);
    this.listeners.chose(...this.at);
  }

  private under(event: MouseEvent): [number, number] {
    const box = this.element.getBoundingClientRect();
    const part = (from: number, size: number, count: number): number =>
      Math.min(Math.max(Math.floor((from / Math.max(size, 1)) * count), 0), count - 1);
    return [
      part(event.clientY - box.top, box.height, this.rows),
      part(event.clientX - box.left, box.width, this.columns),
    ];
  }

  private onKey(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
      Home: [0, -this.columns], End: [0, this.columns],
    }; // prettier-ignore
    const by = steps[event.key];
    if (by !== undefined) {
      this.choose(this.at[0] + by[0], this.at[1] + by[1]);
    } else if (event.key === "+" || event.key === "Enter") {
      this.listeners.zoom(...this.at, 2);
    } else if (event.key === "-") {
      this.listeners.zoom(...this.at, 0.5);
    } else if (event.key === "0") {
      this.listeners.reset();
    } else {
      return;
    }
    event.preventDefault();
  }
}

function paint(canvas: HTMLCanvasElement, picture: Picture, scale: Scale): void {
  const [rows, columns] = picture.size;
  const pen = canvas.getContext("2d");
  if (pen === null) {
    return;
  }
  const image = pen.createImageData(columns, rows);
  const put = (cell: number, rgb: readonly number[]): void => image.data.set([...rgb, 255], 4 * cell);
  picture.cells.forEach((cell, at) => {
    const value = numberOf(cell);
    if (value !== null) {
      put(at, scale.colour(value));
    }
  });
  for (const name of ["posinf", "neginf", "nan"] as const) {
    picture[name].forEach((cell) => put(cell, MARKS[name].rgb));
  }
  pen.putImageData(image, 0, 0);
}

/** Signs on the cells that are not finite, if they are few enough to be read. */
function signsOf(picture: Picture): HTMLElement[] {
  const [rows, columns] = picture.size;
  if (columns > 32 || rows > 32) {
    return [];
  }
  return (["posinf", "neginf", "nan"] as const).flatMap((name) =>
    picture[name].map((cell) =>
      h(
        "span",
        {
          style: {
            left: `${(100 * ((cell % columns) + 0.5)) / columns}%`,
            top: `${(100 * (Math.floor(cell / columns) + 0.5)) / rows}%`,
          },
        },
        MARKS[name].sign,
      ),
    ),
  );
}
