/** Findings grouped by cause with what each cost; a row opens its places, a place opens the line. */

import * as bridge from "../bridge";
import { button, h, rich } from "../dom";
import type { Subject } from "../messages";
import type { Findings } from "../results";
import { Loader, notice, runButton, type View } from "../view";
import * as units from "../../units";
import { COLUMNS, countText, deedOf, hiddenCount, shownGroups, sortedBy, type Shown, type Sort } from "./model";
import { groupRows } from "./rows";

interface Remembered {
  findingsSort?: Sort;
  findingsHidden?: boolean;
}

export function create(): View {
  return new FindingsView();
}

class FindingsView implements View {
  private readonly filter = h("input", {
    class: "search",
    type: "search",
    placeholder: "Filter findings",
    "aria-label": "Filter findings",
  });
  private readonly shownCount = h("span", { class: "dim", role: "status" });
  private readonly hiddenBox = h("input", { type: "checkbox" });
  private readonly hiddenText = h("span", {}, "");
  private readonly hiddenLabel = h("label", { class: "check", hidden: true }, this.hiddenBox, this.hiddenText);
  private readonly body = h("div", { class: "body scroll" });
  readonly element = h(
    "section",
    { class: "view" },
    h("div", { class: "toolbar" }, this.filter, this.shownCount, h("span", { class: "spacer" }), this.hiddenLabel),
    this.body,
  );
  private subject: Subject | undefined;
  private data: Findings | undefined;
  /** The causes that are open, by key. */
  private readonly open = new Set<string>();
  private sort: Sort = bridge.recall<Remembered>().findingsSort ?? { column: "seconds", down: true };
  private readonly loader = new Loader<Findings>(this.body, "the findings", (result) => {
    this.data = result;
    this.draw();
  });

  constructor() {
    this.hiddenBox.checked = bridge.recall<Remembered>().findingsHidden ?? true;
    this.filter.addEventListener("input", () => this.draw());
    this.hiddenBox.addEventListener("change", () => {
      bridge.remember<Remembered>({ findingsHidden: this.hiddenBox.checked });
      this.draw();
    });
  }

  show(given: Subject): void {
    const same = this.subject?.run === given.run;
    this.subject = given;
    if (!same) {
      this.refresh();
    }
  }

  refresh(): void {
    if (this.subject !== undefined) {
      void this.loader.load("irscope/findings", { run: this.subject.run });
    }
  }

  focus(): void {
    (this.body.querySelector<HTMLElement>("tbody tr[tabindex='0']") ?? this.filter).focus();
  }

  private draw(): void {
    const { data } = this;
    if (data === undefined) {
      return;
    }
    const hidden = hiddenCount(data);
    this.hiddenLabel.hidden = hidden === 0;
    this.hiddenText.textContent = `Show ${units.count(hidden, "hidden place")}`;
    this.filter.hidden = data.groups.length === 0;
    if (data.groups.length === 0) {
      this.shownCount.textContent = "";
      this.body.replaceChildren(notice(data.standing, "No findings.", data.seconds === 0 ? runButton() : undefined));
      return;
    }
    const groups = shownGroups(data, this.filter.value, this.hiddenBox.checked, this.sort);
    this.shownCount.textContent = countText(groups.length, data.groups.length);
    if (groups.length === 0) {
      const clear = button("Show All", () => {
        this.filter.value = "";
        this.hiddenBox.checked = true;
        this.draw();
      });
      const detail = "The filter hides every finding of this run.";
      this.body.replaceChildren(notice("No finding matches.", detail, clear));
      return;
    }
    this.drawTable(groups, data);
  }

  private drawTable(groups: Shown[], { seconds, standing }: Findings): void {
    const { activeElement } = document;
    const focused = activeElement instanceof HTMLElement ? activeElement.closest("tr")?.dataset["key"] : undefined;
    const rows = groups.flatMap((shown) =>
      groupRows(shown, seconds, this.open.has(shown.key), () => this.toggle(shown.key)),
    );
    this.body.replaceChildren(
      h("p", { class: "standing" }, ...rich(standing)),
      h(
        "table",
        { class: "findings", role: "treegrid", "aria-label": "Findings by cause" },
        h("thead", {}, h("tr", {}, ...COLUMNS.map((column) => this.heading(column)))),
        h("tbody", { on: { keydown: (event) => this.onKey(event) } }, ...rows),
      ),
    );
    const row = rows.find((each) => each.dataset["key"] === focused) ?? rows[0];
    rows.forEach((each) => (each.tabIndex = each === row ? 0 : -1));
    if (focused !== undefined) {
      row?.focus();
    }
  }

  private heading({ column, title, hint }: (typeof COLUMNS)[number]): HTMLElement {
    const direction = this.sort.down ? "descending" : "ascending";
    return h(
      "th",
      {
        class: column,
        scope: "col",
        "aria-sort": this.sort.column === column ? direction : "none",
      },
      button(
        title,
        () => {
          this.sort = sortedBy(column, this.sort);
          bridge.remember<Remembered>({ findingsSort: this.sort });
          this.draw();
          this.body.querySelector<HTMLElement>(`th.${column} button`)?.focus();
        },
        { title: hint },
      ),
    );
  }

  private toggle(key: string, wanted = !this.open.has(key)): void {
    if (wanted) {
      this.open.add(key);
    } else {
      this.open.delete(key);
    }
    this.rows()
      .find((row) => row.dataset["key"] === key)
      ?.focus();
    this.draw();
  }

  private rows(): HTMLElement[] {
    return [...this.body.querySelectorAll<HTMLElement>("tbody tr")];
  }

  private onKey(event: KeyboardEvent): void {
    const row = event.target instanceof HTMLElement ? event.target.closest("tr") : null;
    if (row === null || event.target !== row) {
      return;
    }
    const rows = this.rows();
    const known = rows.map((each) => ({
      key: each.dataset["key"] ?? "",
      isGroup: each.classList.contains("group"),
    }));
    const deed = deedOf(event.key, known, row.dataset["key"] ?? "");
    if (deed === undefined) {
      return;
    }
    event.preventDefault();
    if (deed === "click") {
      row.querySelector<HTMLElement>("button.link")?.click();
    } else if (typeof deed === "object" && "toggle" in deed) {
      this.toggle(deed.toggle, deed.open);
    } else if (typeof deed === "object") {
      const next = rows.find((each) => each.dataset["key"] === deed.go);
      rows.forEach((each) => (each.tabIndex = each === next ? 0 : -1));
      next?.focus();
    }
  }
}
