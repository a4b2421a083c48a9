/** The findings of a run as rows: which are shown, in which order, and where keys lead. */

import * as units from "../../units";
import type { FindingGroup, FindingPlace, Findings } from "../results";
import { placeText } from "../text";

export type Column = "cause" | "place" | "count" | "seconds" | "graphs" | "fixes";

export interface Sort {
  column: Column;
  down: boolean;
}

export const COLUMNS: { column: Column; title: string; hint: string }[] = [
  { column: "cause", title: "Cause", hint: "What happened, and PyTorch's code for it" },
  { column: "place", title: "Place", hint: "The line that it is about; of several the one that cost most" },
  { column: "count", title: "Times", hint: "How often it happened in this run" },
  {
    column: "seconds",
    title: "Compile time",
    hint: "Compile time that it caused; what two causes share counts for both",
  },
  { column: "graphs", title: "Extra graphs", hint: "Graphs that would not be there without it" },
  { column: "fixes", title: "Fixes", hint: "Quick fixes that are offered" },
];

/** Columns of texts, which are sorted upwards at first; numbers begin with the largest. */
const FROM_THE_FIRST: Column[] = ["cause", "place"];

const RANK = { error: 3, warning: 2, information: 1, hint: 0 };

/** Why a place is hidden. */
export const HIDDEN_WORDS = {
  ignored: "ignored by a comment",
  baseline: "in the baseline",
  off: "turned off in the settings",
};

/** A cause and those of its places that are shown. */
export interface Shown {
  group: FindingGroup;
  places: FindingPlace[];
  key: string;
}

export function keyOf({ kind, code }: FindingGroup): string {
  return `${kind}/${code}`;
}

/** How many places are hidden unless the user wants to see them. */
export function hiddenCount({ groups }: Findings): number {
  return groups.reduce((sum, { places }) => sum + places.filter(({ hidden }) => hidden !== "").length, 0);
}

/**
 * The causes that are shown, in order.
 * @param filter text that a cause or a place contains
 * @param withHidden whether places are shown that were ignored, or are in the baseline
 */
export function shownGroups({ groups }: Findings, filter: string, withHidden: boolean, sort: Sort): Shown[] {
  return groups
    .map((group) => ({ group, places: placesOf(group, filter, withHidden), key: keyOf(group) }))
    .filter(({ places }) => places.length > 0)
    .sort((a, b) => (sort.down ? -1 : 1) * compare(a.group, b.group, sort.column));
}

/** The ranks of a cause, where all its places are of the same ones. */
export function ranksOf(places: FindingPlace[]): string[] {
  const ranks = new Set(places.map((place) => place.ranks));
  return ranks.size === 1 ? [...ranks].filter((text) => text !== "") : [];
}

/** `2 groups`, `1 of 2 groups`: a group may have several causes, which the sentence above the table counts. */
export function countText(shown: number, all: number): string {
  return shown === all ? units.count(all, "group") : `${shown} of ${units.count(all, "group")}`;
}

/** The order after a click on the head of a column: numbers from the largest, and the other way round with a second one. */
export function sortedBy(column: Column, before: Sort): Sort {
  return { column, down: before.column === column ? !before.down : !FROM_THE_FIRST.includes(column) };
}

/** A row as far as the keyboard is concerned. */
export interface Row {
  key: string;
  isGroup: boolean;
}

/** What a key does on a row; `click` is that of the row's link. */
export type Deed = { go: string } | { toggle: string; open?: boolean } | "click" | "nothing";

/** @returns undefined for keys that mean nothing here */
export function deedOf(key: string, rows: Row[], current: string): Deed | undefined {
  const at = rows.findIndex((row) => row.key === current);
  const isGroup = rows[at]?.isGroup ?? false;
  const go = (row: Row | undefined): Deed => (row === undefined ? "nothing" : { go: row.key });
  switch (key) {
    case "ArrowDown":
      return go(rows[at + 1]);
    case "ArrowUp":
      return go(rows[at - 1]);
    case "Home":
      return go(rows[0]);
    case "End":
      return go(rows.at(-1));
    case "ArrowRight":
      return isGroup ? { toggle: current, open: true } : undefined;
    case "ArrowLeft":
      return isGroup
        ? { toggle: current, open: false }
        : go(
            rows
              .slice(0, at)
              .filter((row) => row.isGroup)
              .at(-1),
          );
    case "Enter":
    case " ":
      return isGroup ? { toggle: current } : "click";
    default:
      return undefined;
  }
}

function placesOf(group: FindingGroup, filter: string, withHidden: boolean): FindingPlace[] {
  const wanted = filter.trim().toLowerCase();
  const ofGroup = `${group.title} ${group.code} ${group.message}`.toLowerCase();
  return group.places.filter(
    (place) =>
      (withHidden || place.hidden === "") &&
      (ofGroup.includes(wanted) || `${place.message} ${place.code} ${placeText(place)}`.toLowerCase().includes(wanted)),
  );
}

function compare(a: FindingGroup, b: FindingGroup, column: Column): number {
  if (column === "place") {
    return sortable(a).localeCompare(sortable(b), undefined, { numeric: true });
  }
  if (column === "cause") {
    return `${9 - RANK[a.severity]}${a.title}`.localeCompare(`${9 - RANK[b.severity]}${b.title}`);
  }
  const cost = column === "seconds" ? Number(a.costsEveryCall) - Number(b.costsEveryCall) : 0;
  return cost || a[column] - b[column] || a.count - b.count;
}

function sortable({ places: [first] }: FindingGroup): string {
  return first === undefined ? "" : placeText(first);
}
