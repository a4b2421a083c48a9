/** The picture itself: a canvas of cells, with a cell at hand that mouse and arrow keys move. */

import { h } from "../dom";
import type { Picture } from "./values";
import { MARKS, scaleOf, type Scale } from "./scale";

export interface Heatmap {
  readonly element: HTMLElement;
  readonly scale: Scale;
  /** Puts the cell at hand somewhere. */
  choose(row: number, column: number): void;
}

interface Listeners {
  chose(row: number, column: number): void;
  /** Looks closer at a cell (`by` above 1), or from further away. */
  zoom(row: number, column: number, by: number): void;
  reset(): void;
}

const LARGEST_CELL = 48;

export function heatmap(
  picture: Picture,
  listeners: Listeners,
  { theme, isDifference }: { theme: "dark" | "light"; isDifference: boolean },
  label: string,
): Heatmap {
  const [rows, columns] = picture.size;
  const scale = scaleOf(picture.cells.map(numberOf), theme, isDifference);
  const canvas = h("canvas", { class: "cells", attributes: { width: columns, height: rows, "aria-hidden": true } });
  paint(canvas, picture, scale);
  const signs = h("div", { class: "signs", attributes: { "aria-hidden": true } }, ...signsOf(picture));
  const mark = h("div", { class: "at-hand", attributes: { "aria-hidden": true } });
  const element = h(
    "div",
    {
      class: "heatmap",
      tabIndex: 0,
      attributes: { role: "application", "aria-roledescription": "heat map", "aria-label": label },
      style: { "--rows": String(rows), "--columns": String(columns), "--largest": `${LARGEST_CELL}px` },
    },
    canvas,
    signs,
    mark,
  );
  let at: [number, number] = [0, 0];

  function choose(row: number, column: number): void {
    at = [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)];
    const place = { left: (100 * at[1]) / columns, top: (100 * at[0]) / rows };
    mark.style.setProperty("left", `${place.left}%`);
    mark.style.setProperty("top", `${place.top}%`);
    mark.style.setProperty("width", `${100 / columns}%`);
    mark.style.setProperty("height", `${100 / rows}%`);
    listeners.chose(...at);
  }

  function under(event: MouseEvent): [number, number] {
    const box = element.getBoundingClientRect();
    const part = (from: number, size: number, count: number): number =>
      Math.min(Math.max(Math.floor((from / Math.max(size, 1)) * count), 0), count - 1);
    return [part(event.clientY - box.top, box.height, rows), part(event.clientX - box.left, box.width, columns)];
  }

  element.addEventListener("pointermove", (event) => choose(...under(event)));
  element.addEventListener("dblclick", (event) => listeners.zoom(...under(event), event.shiftKey ? 0.5 : 2));
  element.addEventListener("keydown", (event) => {
    const steps: Record<string, [number, number]> = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
      Home: [0, -columns], End: [0, columns],
    }; // prettier-ignore
    const by = steps[event.key];
    if (by !== undefined) {
      choose(at[0] + by[0], at[1] + by[1]);
    } else if (event.key === "+" || event.key === "Enter") {
      listeners.zoom(...at, 2);
    } else if (event.key === "-") {
      listeners.zoom(...at, 0.5);
    } else if (event.key === "0") {
      listeners.reset();
    } else {
      return;
    }
    event.preventDefault();
  });
  return { element, scale, choose };
}

/** Numbers that JSON has not come as texts. */
export function numberOf(cell: number | string | null): number | null {
  return cell === null ? null : Number(cell);
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

/** Signs on the cells that are not finite, where they are few enough to be read. */
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
