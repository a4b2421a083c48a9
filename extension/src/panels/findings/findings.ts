/** Findings grouped by cause with what each cost; a row opens its places, a place opens the line. */

import * as bridge from "../bridge";
import { button, h, rich } from "../dom";
import type { Subject } from "../messages";
import type { FindingGroup, FindingPlace, Findings } from "../results";
import { Loader, notice, percent, placeLink, placeText, runButton, seconds, type View } from "../view";
import { plural } from "../../format";

type Column = "cause" | "count" | "seconds" | "graphs" | "fixes";

interface Remembered {
  findingsSort?: { column: Column; down: boolean };
  findingsHidden?: boolean;
}

const COLUMNS: { column: Column; title: string; hint: string }[] = [
  { column: "cause", title: "Cause", hint: "What happened, and PyTorch's code for it" },
  { column: "count", title: "Times", hint: "How often it happened in this run" },
  { column: "seconds", title: "Compile time", hint: "Seconds of compile time that it brought about" },
  { column: "graphs", title: "Extra graphs", hint: "Graphs that would not be there without it" },
  { column: "fixes", title: "Fixes", hint: "Places with a quick fix" },
];
const RANK = { error: 3, warning: 2, information: 1, hint: 0 };
const HIDDEN_WORDS = {
  ignored: "ignored by a comment",
  baseline: "in the baseline",
  off: "turned off in the settings",
};

export function createFindings(): View {
  const toolbar = h("div", { class: "toolbar" });
  const body = h("div", { class: "body scroll" });
  const element = h("section", { class: "view" }, toolbar, body);
  const filter = h("input", {
    class: "search",
    attributes: { type: "search", placeholder: "Filter findings", "aria-label": "Filter findings" },
  });
  const shownCount = h("span", { class: "dim", attributes: { role: "status" } });
  const hiddenBox = h("input", { attributes: { type: "checkbox" } });
  const hiddenLabel = h("label", { class: "check", hidden: true }, hiddenBox, h("span", {}, ""));
  toolbar.append(filter, shownCount, h("span", { class: "spacer" }), hiddenLabel);

  let subject: Subject | undefined;
  let data: Findings | undefined;
  const open = new Set<string>();
  let sort = bridge.recall<Remembered>().findingsSort ?? { column: "seconds" as Column, down: true };
  hiddenBox.checked = bridge.recall<Remembered>().findingsHidden ?? true;
  const loader = new Loader<Findings>(body, "the findings", (result) => {
    data = result;
    draw();
  });
  filter.addEventListener("input", () => draw());
  hiddenBox.addEventListener("change", () => {
    bridge.remember<Remembered>({ findingsHidden: hiddenBox.checked });
    draw();
  });

  function load(): void {
    if (subject !== undefined) {
      void loader.load("irscope/findings", { run: subject.run });
    }
  }

  function draw(): void {
    if (data === undefined) {
      return;
    }
    const hidden = data.groups.reduce(
      (sum, group) => sum + group.places.filter((place) => place.hidden !== "").length,
      0,
    );
    hiddenLabel.hidden = hidden === 0;
    filter.hidden = data.groups.length === 0;
    hiddenLabel.lastElementChild?.replaceChildren(`Show ${plural(hidden, "hidden place")}`);
    if (data.groups.length === 0) {
      shownCount.textContent = "";
      body.replaceChildren(notice("No findings.", data.reason, data.seconds === 0 ? runButton() : undefined));
      return;
    }
    const groups = data.groups
      .map((group) => ({ group, places: placesOf(group) }))
      .filter(({ places }) => places.length > 0);
    groups.sort((a, b) => (sort.down ? -1 : 1) * compare(a.group, b.group, sort.column));
    shownCount.textContent =
      groups.length === data.groups.length
        ? plural(groups.length, "cause")
        : `${groups.length} of ${plural(data.groups.length, "cause")}`;
    if (groups.length === 0) {
      const clear = button("Show All", () => {
        filter.value = "";
        hiddenBox.checked = true;
        draw();
      });
      body.replaceChildren(notice("No finding matches.", "The filter leaves nothing of what this run found.", clear));
      return;
    }
    const total = data.seconds;
    const focused =
      document.activeElement instanceof HTMLElement ? document.activeElement.closest("tr")?.dataset["key"] : undefined;
    const rows = groups.flatMap(({ group, places }) => groupRows(group, places, total));
    body.replaceChildren(
      h(
        "table",
        { class: "findings", attributes: { role: "treegrid", "aria-label": "Findings by cause" } },
        h("thead", {}, h("tr", {}, ...COLUMNS.map(heading))),
        h("tbody", { on: { keydown: onKey } }, ...rows),
      ),
    );
    const row = rows.find((each) => each.dataset["key"] === focused) ?? rows[0];
    rows.forEach((each) => (each.tabIndex = each === row ? 0 : -1));
    if (focused !== undefined) {
      row?.focus();
    }
  }

  function placesOf(group: FindingGroup): FindingPlace[] {
    const wanted = filter.value.trim().toLowerCase();
    const ofGroup = `${group.title} ${group.code} ${group.message}`.toLowerCase();
    return group.places.filter(
      (place) =>
        (hiddenBox.checked || place.hidden === "") &&
        (ofGroup.includes(wanted) ||
          `${place.message} ${place.code} ${placeText(place)}`.toLowerCase().includes(wanted)),
    );
  }

  function heading({ column, title, hint }: (typeof COLUMNS)[number]): HTMLElement {
    const mine = sort.column === column;
    return h(
      "th",
      {
        class: column,
        attributes: { scope: "col", "aria-sort": mine ? (sort.down ? "descending" : "ascending") : "none" },
      },
      button(
        title,
        () => {
          sort = { column, down: mine ? !sort.down : column !== "cause" };
          bridge.remember<Remembered>({ findingsSort: sort });
          draw();
          body.querySelector<HTMLElement>(`th.${column} button`)?.focus();
        },
        { title: hint },
      ),
    );
  }

  function groupRows(group: FindingGroup, places: FindingPlace[], total: number): HTMLElement[] {
    const key = `${group.kind}/${group.code}`;
    const expanded = open.has(key);
    const dimmed = places.every((place) => place.hidden !== "");
    const row = h(
      "tr",
      {
        class: `group ${group.severity}${dimmed ? " hidden-finding" : ""}`,
        attributes: { "aria-level": 1, "aria-expanded": expanded, "data-key": key },
        on: {
          click: (event) =>
            event.target instanceof Element && event.target.closest("a, button") === null && toggle(key),
        },
      },
      h(
        "td",
        { class: "cause" },
        h("span", { class: "twisty", attributes: { "aria-hidden": true } }, expanded ? "▾" : "▸"),
        h("span", {
          class: "severity",
          title: group.severity,
          attributes: { role: "img", "aria-label": group.severity },
        }),
        h("strong", {}, group.title),
        " ",
        codeOf(group),
        h("span", { class: "message", title: group.message }, ...rich(group.message)),
      ),
      h("td", { class: "count" }, `${group.count}×`),
      h(
        "td",
        { class: "seconds" },
        group.seconds > 0 ? seconds(group.seconds) : "",
        group.seconds > 0 && h("span", { class: "dim" }, ` ${percent(group.seconds, total)}`),
        group.seconds > 0 &&
          h("span", { class: "bar", style: { "--share": String(Math.min(1, group.seconds / (total || 1))) } }),
      ),
      h("td", { class: "graphs" }, group.graphs > 0 ? `+${group.graphs}` : ""),
      h("td", { class: "fixes" }, group.fixes > 0 ? plural(group.fixes, "fix", "fixes") : ""),
    );
    return expanded
      ? [row, ...places.map((place, index) => placeRow(group, place, `${key}/${index}`)), adviceRow(group)]
      : [row];
  }

  function placeRow(group: FindingGroup, place: FindingPlace, key: string): HTMLElement {
    return h(
      "tr",
      {
        class: `place${place.hidden === "" ? "" : " hidden-finding"}`,
        attributes: { "aria-level": 2, "data-key": key },
        on: {
          click: (event) =>
            event.target instanceof Element && event.target.closest("button") === null && bridge.open(place),
        },
      },
      h(
        "td",
        { class: "cause" },
        placeLink(place),
        h("code", { title: place.code }, place.code),
        place.hidden !== "" && h("span", { class: "chip" }, HIDDEN_WORDS[place.hidden]),
        place.message !== group.message &&
          h("span", { class: "message", title: place.message }, ...rich(place.message)),
      ),
      h(
        "td",
        { class: "count", title: place.compiles.length > 0 ? `in ${place.compiles.join(", ")}` : "" },
        `${place.count}×`,
      ),
      h("td", { class: "seconds" }, place.seconds > 0 ? seconds(place.seconds) : ""),
      h("td", { class: "graphs" }, place.graphs > 0 ? `+${place.graphs}` : ""),
      h("td", { class: "fixes" }, place.fixes > 0 ? plural(place.fixes, "fix", "fixes") : ""),
    );
  }

  function adviceRow(group: FindingGroup): HTMLElement {
    const cell = h("td", { class: "advice", attributes: { colspan: COLUMNS.length } });
    if (group.explanation !== "") {
      cell.append(h("p", {}, ...rich(group.explanation)));
    }
    if (group.hints.length > 0) {
      cell.append(h("ul", {}, ...group.hints.map((hint) => h("li", {}, ...rich(hint)))));
    }
    return h(
      "tr",
      { class: "advice", attributes: { "aria-level": 2, "data-key": `${group.kind}/${group.code}/advice` } },
      cell,
    );
  }

  function toggle(key: string, wanted = !open.has(key)): void {
    if (wanted) {
      open.add(key);
    } else {
      open.delete(key);
    }
    rowOf(key)?.focus();
    draw();
  }

  function rowOf(key: string): HTMLElement | undefined {
    return [...body.querySelectorAll<HTMLElement>("tbody tr")].find((row) => row.dataset["key"] === key);
  }

  function onKey(event: KeyboardEvent): void {
    const row = event.target instanceof HTMLElement ? event.target.closest("tr") : null;
    if (row === null || event.target !== row) {
      return;
    }
    const rows = [...body.querySelectorAll<HTMLElement>("tbody tr")];
    const at = rows.indexOf(row);
    const key = row.dataset["key"] ?? "";
    const isGroup = row.classList.contains("group");
    let next: HTMLElement | undefined;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      next = rows[at + (event.key === "ArrowDown" ? 1 : -1)];
    } else if (event.key === "Home" || event.key === "End") {
      next = event.key === "Home" ? rows[0] : rows.at(-1);
    } else if (event.key === "ArrowRight" && isGroup) {
      toggle(key, true);
    } else if (event.key === "ArrowLeft") {
      if (isGroup) {
        toggle(key, false);
      } else {
        next = rows
          .slice(0, at)
          .filter((each) => each.classList.contains("group"))
          .at(-1);
      }
    } else if (event.key === "Enter" || event.key === " ") {
      if (isGroup) {
        toggle(key);
      } else {
        row.querySelector<HTMLElement>("button.link")?.click();
      }
    } else {
      return;
    }
    event.preventDefault();
    if (next !== undefined) {
      rows.forEach((each) => (each.tabIndex = each === next ? 0 : -1));
      next.focus();
    }
  }

  return {
    element,
    show(given) {
      const same = subject?.run === given.run;
      subject = given;
      if (!same) {
        load();
      }
    },
    refresh: load,
    focus() {
      (body.querySelector<HTMLElement>("tbody tr[tabindex='0']") ?? filter).focus();
    },
  };
}

function codeOf({ code, link, title }: FindingGroup): HTMLElement {
  if (link === null) {
    return h("code", { class: "code" }, code);
  }
  const anchor = h(
    "a",
    {
      class: "code",
      title: "PyTorch's own page on it",
      attributes: { "aria-label": `${code}: PyTorch's page on this ${title.toLowerCase()}` },
    },
    code,
  );
  anchor.href = link; // The server lets only http and https through.
  return anchor;
}

function compare(a: FindingGroup, b: FindingGroup, column: Column): number {
  if (column === "cause") {
    return `${9 - RANK[a.severity]}${a.title}`.localeCompare(`${9 - RANK[b.severity]}${b.title}`);
  }
  return a[column] - b[column] || a.count - b.count;
}
