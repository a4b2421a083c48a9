/** The rows of the table of findings. */

import * as bridge from "../bridge";
import { h, rich } from "../dom";
import type { FindingGroup, FindingHint, FindingPlace } from "../results";
import { placeLink } from "../view";
import * as units from "../../units";
import { COLUMNS, HIDDEN_WORDS, keyOf, ranksOf, type Shown } from "./model";

/** The row of a cause and, if it is open, those of its places and of what to do. */
export function groupRows(shown: Shown, total: number, isOpen: boolean, toggle: () => void): HTMLElement[] {
  const { group, places, key } = shown;
  const row = groupRow(shown, total, isOpen, toggle);
  return isOpen
    ? [row, ...places.map((place, index) => placeRow(group, place, `${key}/${index}`)), adviceRow(group)]
    : [row];
}

function groupRow({ group, places, key }: Shown, total: number, isOpen: boolean, toggle: () => void): HTMLElement {
  const dimmed = places.every((place) => place.hidden !== "");
  return h(
    "tr",
    {
      class: `group ${group.severity}${dimmed ? " hidden-finding" : ""}`,
      "aria-level": 1,
      "aria-expanded": isOpen,
      "data-key": key,
      on: {
        click: ({ target }) => target instanceof Element && target.closest("a, button") === null && toggle(),
      },
    },
    causeCell(group, places, isOpen),
    placesCell(places),
    h("td", { class: "count" }, `${group.count}×`),
    h(
      "td",
      { class: "seconds" },
      group.seconds > 0 ? units.duration(group.seconds) : "",
      group.seconds > 0 && h("span", { class: "dim" }, ` ${units.percent(group.seconds, total)}`),
      group.seconds > 0 &&
        h("span", { class: "bar", style: { "--share": String(Math.min(1, group.seconds / (total || 1))) } }),
    ),
    ...gains(group),
  );
}

function causeCell(group: FindingGroup, places: FindingPlace[], isOpen: boolean): HTMLElement {
  return h(
    "td",
    { class: "cause" },
    h("span", { class: "twisty", "aria-hidden": true }, isOpen ? "▾" : "▸"),
    h("span", {
      class: "severity",
      title: group.severity,
      role: "img",
      "aria-label": group.severity,
    }),
    h("strong", {}, group.title),
    " ",
    codeOf(group),
    ...ranksOf(places).map((ranks) => h("span", { class: "chip" }, ranks)),
    h("span", { class: "message", title: group.message }, ...rich(withoutTitle(group))),
  );
}

/** The message of a group, to be shown after its title. */
function withoutTitle({ title, message }: FindingGroup): string {
  return message.startsWith(`${title}: `) ? message.slice(title.length + 2) : message;
}

/** The first place, which cost most, and how many others an open row lists. */
function placesCell([first, ...others]: FindingPlace[]): HTMLElement {
  return h(
    "td",
    { class: "place" },
    h(
      "div",
      {},
      first !== undefined && placeLink(first),
      others.length > 0 &&
        h("span", { class: "dim" }, ` +${others.length}`, h("span", { class: "only-read" }, " more")),
    ),
  );
}

function placeRow(group: FindingGroup, place: FindingPlace, key: string): HTMLElement {
  return h(
    "tr",
    {
      class: `place${place.hidden === "" ? "" : " hidden-finding"}`,
      "aria-level": 2,
      "data-key": key,
      on: {
        click: ({ target }) => target instanceof Element && target.closest("button") === null && bridge.open(place),
      },
    },
    h(
      "td",
      { class: "cause" },
      h("code", { title: place.code }, place.code),
      place.hidden !== "" && h("span", { class: "chip" }, HIDDEN_WORDS[place.hidden]),
      place.ranks !== "" && h("span", { class: "chip" }, place.ranks),
      place.message !== group.message && h("span", { class: "message", title: place.message }, ...rich(place.message)),
    ),
    h("td", { class: "place" }, placeLink(place)),
    h(
      "td",
      { class: "count", title: place.compiles.length > 0 ? `in ${place.compiles.join(", ")}` : "" },
      `${place.count}×`,
    ),
    h("td", { class: "seconds" }, place.seconds > 0 ? units.duration(place.seconds) : ""),
    ...gains(place),
  );
}

/** Graphs that would not be there, and fixes. */
function gains({ graphs, fixes }: { graphs: number; fixes: number }): HTMLElement[] {
  return [
    h("td", { class: "graphs" }, graphs > 0 ? `+${graphs}` : ""),
    h("td", { class: "fixes" }, fixes > 0 ? units.count(fixes, "fix") : ""),
  ];
}

function adviceRow(group: FindingGroup): HTMLElement {
  const cell = h("td", { class: "advice", colspan: COLUMNS.length });
  if (group.explanation !== "") {
    cell.append(h("p", {}, ...rich(group.explanation)));
  }
  if (group.hints.length > 0) {
    cell.append(h("ul", {}, ...group.hints.map(hintItem)));
  }
  return h("tr", { class: "advice", "aria-level": 2, "data-key": `${keyOf(group)}/advice` }, cell);
}

function hintItem({ text, said, helps }: FindingHint): HTMLElement {
  return h("li", { class: helps === true ? "helps" : "" }, ...rich(text), said !== "" && h("div", {}, ...rich(said)));
}

function codeOf({ code, link, title }: FindingGroup): HTMLElement {
  if (link === null) {
    return h("code", { class: "code" }, code);
  }
  const anchor = h(
    "a",
    {
      class: "code",
      title: "PyTorch's page about it",
      "aria-label": `${code}: PyTorch's page on this ${title.toLowerCase()}`,
    },
    code,
  );
  anchor.href = link; // The server lets only http and https through.
  return anchor;
}
