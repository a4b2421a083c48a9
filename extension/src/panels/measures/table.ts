/** Tables of measures, and the tree of modules or call frames as one of them. */

import { button, h } from "../dom";
import type { MeasureTree } from "../results";
import { placeLink } from "../view";
import { matchesOf, pathTo } from "./flame";
import {
  openAtFirst,
  pathBoxes,
  pathRows,
  treeColumns,
  type PathBox,
  type PathRow,
  type Row,
  type Share,
} from "./tree";

/** So many columns of numbers fit beside the names also where there is little room. */
const FEW = 4;

/** A table of rows that are made already. */
export function tableElement(
  title: string,
  first: string,
  columns: string[],
  rows: HTMLElement[],
  kind = columns.length <= FEW ? "few" : "",
): HTMLElement {
  return h(
    "table",
    { class: `measured ${kind}`.trimEnd() },
    h("caption", { class: "only-read" }, title),
    h("thead", {}, h("tr", {}, ...[first, ...columns].map((column) => h("th", { scope: "col" }, column)))),
    h("tbody", {}, ...rows),
  );
}

/** @param fold what is before the name of a part of a tree */
export function rowElement(row: Row | PathRow, columns: string[], fold?: HTMLElement): HTMLElement {
  const { place, name, detail, share, cells } = row;
  const head = h(
    "td",
    "depth" in row ? { class: "what part", style: { "--depth": String(row.depth) } } : { class: "what" },
    fold,
    place === undefined ? h("span", { class: "name" }, name) : placeLink(place, name),
    detail !== "" && h("div", { class: "dim detail", title: detail }, detail),
  );
  const numbers = cells.map((text, index) =>
    h(
      "td",
      {
        class: columns[index]?.startsWith("%") === true ? "number share" : "number",
        "data-column": columns[index] ?? "",
        style: { "--share": String(share) },
      },
      text,
    ),
  );
  return h("tr", {}, head, ...numbers);
}

/** A tree whose parts open and close; what is open stays so until another tree is taken. */
export class TreeTable {
  readonly element = h("div", {});
  private tree: MeasureTree | undefined;
  private boxes: PathBox[] = [];
  private open = new Set<number>();
  private share: Share | undefined;
  private wanted = "";

  /** @param title what is read aloud; @param first of the first column */
  constructor(
    private readonly title: string,
    private readonly first: string,
  ) {}

  take(tree: MeasureTree, share?: Share): void {
    this.tree = tree;
    this.share = share;
    this.boxes = pathBoxes(tree);
    this.open = openAtFirst(this.boxes);
    this.mark(this.wanted);
  }

  /** Opens the tree around what a search finds; the other rows are faded. */
  mark(wanted: string): void {
    this.wanted = wanted;
    for (const found of matchesOf(this.boxes, wanted)) {
      pathTo(found)
        .slice(1)
        .forEach(({ id }) => this.open.add(id));
    }
    this.draw();
  }

  private draw(): void {
    if (this.tree === undefined) {
      return;
    }
    const columns = treeColumns(this.tree, this.share);
    const rows = pathRows(this.tree, this.boxes, this.open, this.share);
    const found = new Set(matchesOf(this.boxes, this.wanted).map(({ id }) => id));
    const elements = rows.map((row) => {
      const element = rowElement(row, columns, this.foldButton(row));
      element.classList.toggle("faded", this.wanted.trim() !== "" && !found.has(row.id));
      return element;
    });
    const kind = this.share === undefined ? "few" : "few shares";
    this.element.replaceChildren(tableElement(this.title, this.first, columns, elements, kind));
  }

  /** What opens and closes a part; where nothing is inside, its place is kept. */
  private foldButton({ id, name, isOpen }: PathRow): HTMLElement {
    if (isOpen === undefined) {
      return h("span", { class: "twisty" });
    }
    const fold = (): void => {
      this.open[isOpen ? "delete" : "add"](id);
      this.draw();
      this.element.querySelector<HTMLElement>(`[data-fold="${id}"]`)?.focus();
    };
    const attributes = { class: "link twisty", "aria-label": name, "aria-expanded": isOpen, "data-fold": id };
    return button(isOpen ? "▾" : "▸", fold, attributes);
  }
}
