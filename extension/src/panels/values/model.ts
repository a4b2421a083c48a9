/** A value as a picture, as data: which part of it is asked for, and what is said of it. */

import { MARKS } from "./scale";

export type Told = number | string | null;

/** What `irscopePicture` answers (docs/DEBUGGER.md); laid out in irscope/values/run/picture.py. */
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

export interface Answer {
  expression: string;
  node: string;
  stage: string;
  compared: string[];
  picture: Picture;
}

/** What is asked for of the picture. */
export interface Wish {
  rows?: number;
  columns?: number;
  index?: number[];
  window?: number[];
  cell?: "mean" | "largest";
}

export const NOT_FINITE = ["nan", "posinf", "neginf"] as const;

export const COMPARED = [
  { value: "value", text: "Value" },
  { value: "compiled", text: "Compiled" },
  { value: "eager", text: "Eager" },
  { value: "float64", text: "float64" },
  { value: "compiled - float64", text: "Compiled − float64" },
  { value: "eager - float64", text: "Eager − float64" },
  { value: "compiled - eager", text: "Compiled − eager" },
];

/** Whether it was chosen from the list and not typed. */
export function isCompared(expression: string): boolean {
  return COMPARED.some(({ value }) => value === expression);
}

/** Numbers that JSON has not come as texts. */
export function numberOf(cell: Told): number | null {
  return cell === null ? null : Number(cell);
}

export function short(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e7 ? String(value) : String(Number(value.toPrecision(5)));
}

export function tell(value: Told): string {
  return value === null ? "–" : typeof value === "string" ? value : short(value);
}

export function shapeOf({ dtype, shape }: Picture): string {
  return `${dtype}[${shape.join(", ")}]`;
}

/** The window that shows everything. */
export function wholeOf({ extent }: Picture): number[] {
  return [0, 0, ...extent];
}

export function isWhole(picture: Picture): boolean {
  return picture.window.join() === wholeOf(picture).join();
}

/** Which part is shown and, if a cell is several elements, which figure of them. */
export function partText({ window, extent, size, cell }: Picture): string {
  const [top, left, bottom, right] = window;
  const all = `${extent[0]} × ${extent[1]}`;
  const isPart = bottom - top < extent[0] || right - left < extent[1];
  const part = isPart ? `rows ${top}–${bottom - 1}, columns ${left}–${right - 1} of ${all}` : all;
  const isExact = size[0] === bottom - top && size[1] === right - left;
  const what = cell === "mean" ? "mean of its elements" : "element of the largest magnitude";
  return isExact ? part : `${part}; a cell is the ${what}`;
}

/** The window around a cell that is `by` times closer. */
export function zoomed(picture: Picture, row: number, column: number, by: number): number[] {
  const [top, left, bottom, right] = picture.window;
  const around = (from: number, to: number, at: number, count: number, most: number): [number, number] => {
    const size = Math.min(most, Math.max(Math.min(4, most), Math.round((to - from) / by)));
    const middle = from + ((at + 0.5) * (to - from)) / count;
    const first = Math.min(Math.max(Math.round(middle - size / 2), 0), most - size);
    return [first, first + size];
  };
  const [first, last] = around(top, bottom, row, picture.size[0], picture.extent[0]);
  const [start, end] = around(left, right, column, picture.size[1], picture.extent[1]);
  return [first, start, last, end];
}

/** `[0, 12–15] = 0.25, NaN` for a cell. */
export function cellText(picture: Picture, row: number, column: number): string {
  const at = row * picture.size[1] + column;
  const [top, left, bottom, right] = picture.window;
  const range = (from: number, to: number, number: number, count: number): string => {
    const first = from + Math.ceil((number * (to - from)) / count);
    const last = from + Math.ceil(((number + 1) * (to - from)) / count) - 1;
    return last > first ? `${first}–${last}` : String(first);
  };
  const columns = range(left, right, column, picture.size[1]);
  const index = picture.index.map(String);
  index[picture.rows] = range(top, bottom, row, picture.size[0]);
  index[picture.columns] = columns;
  const value = numberOf(picture.cells[at] ?? null);
  const marks = NOT_FINITE.filter((name) => picture[name].includes(at)).map((name) => MARKS[name].name);
  const told = [...(value === null ? [] : [short(value)]), ...marks].join(", ");
  const dimensions = picture.shape.length;
  return `[${dimensions === 0 ? "" : dimensions === 1 ? columns : index.join(", ")}] = ${told}`;
}

/** What is asked for when a dimension is put on the rows or columns; it changes places with one that is there. */
export function turned(picture: Picture, own: "rows" | "columns", chosen: number): Wish {
  const other = own === "rows" ? "columns" : "rows";
  const swapped = chosen === picture[other] ? picture[own] : picture[other];
  const kept = { index: picture.index, cell: picture.cell };
  return own === "rows" ? { ...kept, rows: chosen, columns: swapped } : { ...kept, columns: chosen, rows: swapped };
}

/** The dimensions that are neither on the rows nor on the columns, and where they are cut. */
export function cutDimensions({ shape, rows, columns, index }: Picture): { at: number; size: number; index: number }[] {
  return shape
    .map((size, at) => ({ at, size, index: index[at] ?? 0 }))
    .filter(({ at }) => at !== rows && at !== columns);
}

export function statistics({ statistics: told }: Picture): { name: string; text: string; alarming: boolean }[] {
  const rows: [name: string, value: Told | undefined, finite: boolean][] = [
    ["Smallest", told.min, true],
    ["Largest", told.max, true],
    ["Mean", told.mean, true],
    ["Deviation", told.std, true],
    ["Zeros", told.zeros, true],
    ["NaN", told.nan, false],
    ["+∞", told.posinf, false],
    ["−∞", told.neginf, false],
  ];
  return rows.map(([name, value, finite]) => ({
    name,
    text: tell(value ?? null),
    alarming: !finite && value !== 0,
  }));
}

/** Bars in a picture 30 high; square roots, so that a few outliers can still be seen. */
export function bars(counts: number[]): { y: number; height: number }[] {
  const most = Math.max(...counts);
  return counts.map((count) => ({
    y: 30 * (1 - Math.sqrt(count / most)),
    height: Math.max(30 * Math.sqrt(count / most), count > 0 ? 0.4 : 0),
  }));
}
