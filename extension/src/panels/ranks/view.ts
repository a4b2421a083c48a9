/** What the ranks of a job compiled: a table, if they differ, and the graphs of two of them side by side. */

import * as bridge from "../bridge";
import { button, h, rich, select } from "../dom";
import type { Subject } from "../messages";
import * as units from "../../units";
import type {
  RankBucket,
  RankCompile,
  RankDivergence,
  RankOverlap,
  RankRuntime,
  Ranks,
  RankStage,
  RankStatement,
  RankWait,
} from "../results";
import { Loader, notice, placeLink, type View } from "../view";
import {
  BUCKET_HEADS,
  bucketCells,
  cellsOf,
  choices,
  compileText,
  differs,
  headsOf,
  nameOf,
  nounOf,
  OVERLAP_HEADS,
  overlapCells,
  RUNTIME_HEADS,
  runtimeCells,
  shortened,
  SIGNS,
  stageText,
  summaryOf,
  waitText,
  wordOf,
} from "./model";

export function create(): View {
  return new RanksView();
}

class RanksView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly body = h("div", { class: "body scroll" });
  readonly element = h("section", { class: "view" }, this.toolbar, this.body);
  private run = "";
  private other: string | undefined;
  private readonly loader = new Loader<Ranks>(this.body, "the ranks", (result) => this.draw(result));

  show({ run }: Subject): void {
    if (run !== this.run) {
      this.run = run;
      this.other = undefined;
      this.refresh();
    }
  }

  refresh(): void {
    const { run, other } = this;
    if (run !== "") {
      void this.loader.load("irscope/ranks", { run, ...(other === undefined ? {} : { other }) });
    }
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("select, button")?.focus();
  }

  private draw(result: Ranks): void {
    this.toolbar.replaceChildren();
    if (result.ranks.length === 0) {
      this.body.replaceChildren(notice("No ranks.", result.reason));
      return;
    }
    const { first, other } = result;
    const item = result.ranks.find(({ rank }) => rank === first);
    if (other !== null && item !== undefined) {
      this.toolbar.append(
        h("span", { class: "dim" }, `${nameOf(item, nounOf(result.ranks))}, beside`),
        select("Beside the first rank", choices(result), String(other), (rank) => {
          this.other = rank;
          this.refresh();
        }),
      );
    }
    this.toolbar.append(h("span", { class: "summary", role: "status" }, summaryOf(result)));
    this.body.replaceChildren(
      ...section("Where ranks differ", result.divergences.map(divergence)),
      ...(other === null
        ? []
        : section("Compiles", [...compiles(result.compiles, first, other), ...left(result.moreCompiles, "compile")])),
      ...section(titleOf(result), [
        table(result),
        ...left(result.moreRanks, "rank"),
        ...(result.unseen === "" ? [] : [h("p", { class: "dim" }, result.unseen)]),
      ]),
      ...section(`What rank ${first} computes while it communicates`, overlaps(result)),
      ...section("Buckets of DDP", buckets(result.buckets)),
      ...section(`What PyTorch's runtime issues on rank ${first}`, runtime(result.runtime)),
      ...section("Who waited for whom", result.waits.map(wait)),
    );
  }
}

function titleOf({ ranks, world }: Ranks): string {
  if (nounOf(ranks) === "process") {
    return "The script and the processes that it started";
  }
  return world === 0 ? "The only rank that has a trace" : `Ranks of ${world}`;
}

function section(title: string, parts: HTMLElement[]): HTMLElement[] {
  return parts.length === 0 ? [] : [h("section", { class: "ranks" }, h("h2", {}, title), ...parts)];
}

/** What is said of the rows that a list does not have. */
function left(count: number, what: string): HTMLElement[] {
  return count === 0 ? [] : [h("p", { class: "dim" }, `and ${units.count(count, `more ${what}`)}`)];
}

function table(result: Ranks): HTMLElement {
  const heads = headsOf(result);
  return rankTable(
    "The ranks that have a run",
    heads,
    result.ranks.map((one) => cellsOf(one, heads)),
  );
}

type Cell = string | HTMLElement;

function rankTable(caption: string, heads: string[], rows: Cell[][]): HTMLElement {
  const row = (cells: Cell[]) =>
    h("tr", {}, ...cells.map((cell, index) => h("td", { "data-head": heads[index] ?? "" }, cell)));
  return h(
    "table",
    { class: "rank-table" },
    h("caption", { class: "only-read" }, caption),
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map(row)),
  );
}

/** The first cell leads to the code that starts the collective, and to the user's line. */
function overlaps({ overlaps: all, moreOverlaps, overlapText }: Ranks): HTMLElement[] {
  if (all.length === 0) {
    return [];
  }
  const row = (one: RankOverlap): Cell[] => {
    const cells = marked(overlapCells(one), one.exposed, 3);
    const last = cells.pop() ?? "";
    return [
      h("span", {}, placeLink(one.code, one.operation), " ", one.place.uri !== "" && placeLink(one.place)),
      ...cells,
      // Not a column: a panel is narrow.
      h("div", {}, last, one.way !== "" && h("div", { class: "dim" }, one.way)),
    ];
  };
  return [
    h("p", { class: "dim" }, overlapText),
    rankTable("Collectives, and what is computed beside each", OVERLAP_HEADS, all.map(row)),
    ...left(moreOverlaps, "collective"),
  ];
}

function buckets(all: RankBucket[]): HTMLElement[] {
  if (all.length === 0) {
    return [];
  }
  const row = (one: RankBucket): Cell[] => {
    const name = `${one.compile} ${one.number}`;
    return [one.code.uri === "" ? name : placeLink(one.code, name), ...marked(bucketCells(one), one.exposed, 3)];
  };
  return [
    h(
      "p",
      { class: "dim" },
      "Their all-reduces are in no graph: each runs beside the backward of the parts before it.",
    ),
    rankTable("Buckets, in the order in which they are reduced", BUCKET_HEADS, all.map(row)),
  ];
}

function runtime(all: RankRuntime[]): HTMLElement[] {
  const row = (one: RankRuntime): Cell[] => [
    h("span", {}, one.operation, " ", one.place.uri !== "" && placeLink(one.place)),
    ...runtimeCells(one),
  ];
  return all.length === 0 ? [] : [rankTable("Collectives that are in no graph", RUNTIME_HEADS, all.map(row))];
}

/** What a collective without anything beside it says of that is set off. */
function marked(cells: string[], exposed: boolean, at: number): Cell[] {
  return cells.map((text, index) => (exposed && index === at ? h("span", { class: "differs" }, text) : text));
}

function divergence({ code, message, place, ranks }: RankDivergence): HTMLElement {
  return h(
    "div",
    { class: "divergence" },
    h("code", {}, code),
    " ",
    place.uri !== "" && placeLink(place),
    h("span", { class: "chip", title: `ranks ${ranks}` }, `ranks ${shortened(ranks)}`),
    h("div", {}, ...rich(message)),
  );
}

/** Compiles that differ are open; all others are one line each. */
function compiles(all: RankCompile[], first: number, other: number): HTMLElement[] {
  return all.map((one) => {
    const ids = one.left === one.right ? one.left : `${one.left || "–"} ↔ ${one.right || "–"}`;
    const text = h("span", { class: differs(one) ? "differs" : "dim" }, ` ${compileText(one, first, other)}`);
    const place = one.place.uri !== "" && placeLink(one.place);
    const head = [h("code", {}, ids), ` ${one.function}`, text];
    if (one.stages.length === 0) {
      return h("div", { class: "divergence" }, ...head, " ", place);
    }
    // A link in the summary would be a control within a control.
    const details = h(
      "details",
      { class: "rank-compile" },
      h("summary", {}, ...head),
      h("div", { class: "rank-stage" }, place),
      ...one.stages.map((each) => stage(each, first, other)),
    );
    details.open = differs(one);
    return details;
  });
}

function stage(one: RankStage, first: number, other: number): HTMLElement {
  const compare = button(
    "Compare",
    () => bridge.compare(one.left, one.right, `${one.title}: rank ${first} ↔ ${other}`),
    {
      class: "small",
      "aria-label": `Compare ${one.title} of ranks ${first} and ${other}`,
    },
  );
  const head = h(
    "div",
    { class: "rank-stage" },
    h("b", {}, one.title),
    " ",
    h("span", { class: one.same ? "dim" : "differs" }, stageText(one)),
    " ",
    placeLink({ uri: one.left, line: 0 }, `rank ${first}`),
    " ",
    placeLink({ uri: one.right, line: 0 }, `rank ${other}`),
    " ",
    !one.same && compare,
  );
  return one.same ? head : h("div", {}, head, sideBySide(one, first, other));
}

function sideBySide(one: RankStage, first: number, other: number): HTMLElement {
  return h(
    "table",
    { class: "side-by-side" },
    h("caption", { class: "only-read" }, `${one.title} of ranks ${first} and ${other}`),
    h(
      "thead",
      {},
      h("tr", {}, h("td", {}), h("th", { scope: "col" }, `rank ${first}`), h("th", { scope: "col" }, `rank ${other}`)),
    ),
    h(
      "tbody",
      {},
      ...one.rows.map((row) => statement(row, one, first, other)),
      ...(one.more > 0
        ? [h("tr", {}, h("td", {}), h("td", { colspan: 2, class: "dim" }, `and ${one.more} more rows`))]
        : []),
    ),
  );
}

function statement(row: RankStatement, one: RankStage, first: number, other: number): HTMLElement {
  const word = wordOf(row, first, other);
  const sign = h("td", { class: "sign", title: word, role: "img", "aria-label": word }, SIGNS[row.sign]);
  if (row.sign === "skipped") {
    return h("tr", { class: "skipped" }, sign, h("td", { colspan: 2, class: "dim" }, word));
  }
  return h(
    "tr",
    { class: row.sign === "" ? "alike" : row.sign },
    sign,
    cell(row.left, one.left, row.leftLine, `rank ${first}`),
    cell(row.right, one.right, row.rightLine, `rank ${other}`),
  );
}

function cell(text: string, uri: string, line: number, rank: string): HTMLElement {
  return h("td", { class: "statement", "data-rank": rank }, text !== "" && placeLink({ uri, line }, text));
}

function wait(one: RankWait): HTMLElement {
  return h(
    "div",
    { class: "divergence" },
    h("code", {}, one.operation),
    " ",
    one.place.uri !== "" && placeLink(one.place),
    ` ${waitText(one)} `,
    one.before.uri !== "" && placeLink(one.before),
  );
}
