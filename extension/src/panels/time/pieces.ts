/** Pieces of a model that were compiled by themselves: a row for each, a column for each size. */

import { h } from "../dom";
import type { PieceMatrix } from "../results";
import * as units from "../../units";

export function pieceTable({ sizes, rows, note, hiddenRows, hiddenSizes }: PieceMatrix): HTMLElement {
  const titles = ["Piece", ...sizes];
  const lines = rows.map(({ title, cells }) =>
    h("tr", {}, h("th", { scope: "row" }, title), ...cells.map((cell) => h("td", {}, cell === "" ? "–" : cell))),
  );
  const hidden = [
    ...(hiddenRows > 0 ? [units.count(hiddenRows, "more piece")] : []),
    ...(hiddenSizes > 0 ? [units.count(hiddenSizes, "more size")] : []),
  ];
  return h(
    "div",
    { class: "pieces" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...lines),
    ),
    h("p", { class: "dim" }, hidden.length === 0 ? note : `${note}; ${hidden.join(" and ")} left out`),
  );
}
