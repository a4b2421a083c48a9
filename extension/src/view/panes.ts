/** Columns side by side, each with tabs. */

import { h } from "../panels/dom";
import { visible } from "../panels/visible";
import type { Subject } from "./address";
import { iconOf, newId, type IconName } from "./widgets";

export interface Tab {
  /** The same thing is shown once. */
  key: string;
  title: string;
  icon: IconName;
  tooltip: string;
  element: HTMLElement;
  /** What the address of the page says while it is in front. */
  subject: () => Subject;
  focus: () => void;
  /** It came to the front. */
  shown?: () => void;
  dispose: () => void;
}

interface Shown {
  tab: Tab;
  /** Gives way to the next one that is only looked at. */
  preview: boolean;
  handle: HTMLElement;
  panel: HTMLElement;
}

export interface Column {
  tabs: Shown[];
  front: Shown | undefined;
  element: HTMLElement;
  list: HTMLElement;
  body: HTMLElement;
  share: number;
}

const MOST_COLUMNS = 4;

export class Panes {
  readonly element = h("div", { class: "panes" });
  readonly columns: Column[] = [];
  active: Column | undefined;

  constructor(
    private readonly changed: () => void,
    private readonly empty: HTMLElement,
  ) {
    this.lay();
  }

  get front(): Tab | undefined {
    return this.active?.front?.tab;
  }

  /** What can be seen now. */
  get visible(): Tab[] {
    return this.columns.flatMap(({ front }) => (front === undefined ? [] : [front.tab]));
  }

  get all(): Tab[] {
    return this.columns.flatMap(({ tabs }) => tabs.map(({ tab }) => tab));
  }

  find(key: string): Tab | undefined {
    return this.all.find((tab) => tab.key === key);
  }

  columnOf(tab: Tab): Column | undefined {
    return this.columns.find(({ tabs }) => tabs.some((each) => each.tab === tab));
  }

  /** The column right of one; made if it is missing and there is room for it. */
  beside(column: Column | undefined): Column {
    const at = column === undefined ? -1 : this.columns.indexOf(column);
    const next = this.columns[at + 1];
    if (next !== undefined) {
      return next;
    }
    if (this.columns.length >= MOST_COLUMNS) {
      return this.columns.at(-1) ?? this.add();
    }
    return this.add();
  }

  first(): Column {
    return this.columns[0] ?? this.add();
  }

  open(tab: Tab, column: Column, { preview = false, focus = true } = {}): void {
    const panel = h("div", { role: "tabpanel", id: newId("panel"), class: "tabpanel", hidden: "" }, tab.element);
    const close = h("span", { class: "close", title: "Close (Delete)", "aria-hidden": "true" }, iconOf("close"));
    const handle = h(
      "div",
      {
        role: "tab",
        id: newId("tab"),
        class: `tab${preview ? " preview" : ""}`,
        "aria-controls": panel.id,
        "aria-selected": "false",
        tabindex: "-1",
        title: tab.tooltip,
      },
      iconOf(tab.icon),
      h("span", { class: "label" }, tab.title),
      close,
    );
    panel.setAttribute("aria-labelledby", handle.id);
    const shown: Shown = { tab, preview, handle, panel };
    handle.addEventListener("click", (event) => {
      if ((event.target as Element).closest(".close") !== null) {
        this.close(tab);
      } else {
        this.bring(tab);
      }
    });
    handle.addEventListener("auxclick", ({ button: which }) => which === 1 && this.close(tab));
    handle.addEventListener("dblclick", () => this.pin(shown));
    const old = preview ? column.tabs.find((each) => each.preview) : undefined;
    column.tabs.push(shown);
    column.list.append(handle);
    column.body.append(panel);
    if (old !== undefined) {
      this.drop(column, old);
    }
    this.bring(tab, focus);
  }

  /** Brings a tab to the front of its column. */
  bring(tab: Tab, focus = true): void {
    const column = this.columnOf(tab);
    if (column === undefined) {
      return;
    }
    column.front = column.tabs.find((each) => each.tab === tab);
    this.active = column;
    for (const each of column.tabs) {
      const isFront = each === column.front;
      each.panel.hidden = !isFront;
      each.handle.setAttribute("aria-selected", String(isFront));
      each.handle.tabIndex = isFront ? 0 : -1;
      if (isFront) {
        each.handle.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    }
    this.lay();
    tab.shown?.();
    if (focus) {
      tab.focus();
    }
    this.changed();
  }

  close(tab: Tab): void {
    const column = this.columnOf(tab);
    const shown = column?.tabs.find((each) => each.tab === tab);
    if (column === undefined || shown === undefined) {
      return;
    }
    const at = column.tabs.indexOf(shown);
    const hadFocus = column.list.contains(document.activeElement);
    this.drop(column, shown);
    // What is in front stays there where another one goes.
    const next = column.front ?? column.tabs[Math.min(at, column.tabs.length - 1)];
    if (next !== undefined) {
      this.bring(next.tab, false);
      if (hadFocus) {
        next.handle.focus();
      }
      return;
    }
    this.columns.splice(this.columns.indexOf(column), 1);
    this.active = this.columns[0];
    this.lay();
    this.changed();
  }

  rename(tab: Tab, title: string): void {
    tab.title = title;
    const shown = this.columnOf(tab)?.tabs.find((each) => each.tab === tab);
    const label = shown?.handle.querySelector(".label");
    if (label) {
      label.textContent = visible(title);
    }
  }

  private pin(shown: Shown): void {
    shown.preview = false;
    shown.handle.classList.remove("preview");
  }

  private drop(column: Column, shown: Shown): void {
    column.tabs.splice(column.tabs.indexOf(shown), 1);
    shown.handle.remove();
    shown.panel.remove();
    shown.tab.dispose();
    if (column.front === shown) {
      column.front = undefined;
    }
  }

  private add(): Column {
    const list = h("div", { role: "tablist", class: "tabs" });
    const body = h("div", { class: "body" });
    const column: Column = {
      tabs: [],
      front: undefined,
      list,
      body,
      share: 1,
      element: h("section", { class: "column" }, list, body),
    };
    list.addEventListener("keydown", (event) => this.key(event, column));
    column.element.addEventListener("focusin", () => {
      if (this.active !== column && column.front !== undefined) {
        this.active = column;
        this.changed();
      }
    });
    this.columns.push(column);
    this.lay();
    return column;
  }

  /** Puts the columns and what divides them on the screen, without moving existing ones: a frame that is moved reloads. */
  private lay(): void {
    for (const gone of [...this.element.children]) {
      if (!this.columns.some(({ element }) => element === gone)) {
        gone.remove();
      }
    }
    if (this.columns.length === 0) {
      this.element.append(this.empty);
    }
    this.columns.forEach((column, index) => {
      column.element.style.flexGrow = String(column.share);
      column.element.classList.toggle("active", column === this.active);
      column.list.setAttribute("aria-label", `Tabs of column ${index + 1}`);
      column.element.setAttribute("aria-label", `Column ${index + 1}`);
      if (!column.element.isConnected) {
        this.element.append(column.element);
      }
      const left = this.columns[index - 1];
      if (left !== undefined) {
        column.element.before(this.divider(left, column));
      }
    });
  }

  private divider(left: Column, right: Column): HTMLElement {
    const line = h("div", {
      role: "separator",
      class: "divider",
      tabindex: "0",
      "aria-orientation": "vertical",
      "aria-label": "Width of the columns",
      "aria-valuemin": "10",
      "aria-valuemax": "90",
    });
    const share = (part: number): void => {
      const both = left.share + right.share;
      const kept = Math.min(0.9, Math.max(0.1, part));
      left.share = both * kept;
      right.share = both * (1 - kept);
      left.element.style.flexGrow = String(left.share);
      right.element.style.flexGrow = String(right.share);
      line.setAttribute("aria-valuenow", String(Math.round(kept * 100)));
    };
    line.setAttribute("aria-valuenow", String(Math.round((100 * left.share) / (left.share + right.share))));
    line.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.05, ArrowRight: 0.05 }[event.key];
      if (step !== undefined) {
        share(left.share / (left.share + right.share) + step);
        event.preventDefault();
      }
    });
    line.addEventListener("pointerdown", (event) => {
      line.setPointerCapture(event.pointerId);
      const from = left.element.getBoundingClientRect().left;
      const to = right.element.getBoundingClientRect().right;
      line.onpointermove = ({ clientX }) => share((clientX - from) / (to - from));
      line.onpointerup = () => {
        line.onpointermove = null;
      };
    });
    return line;
  }

  private key(event: KeyboardEvent, column: Column): void {
    const at = column.tabs.findIndex(({ handle }) => handle === document.activeElement);
    const here = column.tabs[at];
    if (here === undefined) {
      return;
    }
    const last = column.tabs.length - 1;
    const next = {
      ArrowRight: at === last ? 0 : at + 1,
      ArrowLeft: at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next !== undefined) {
      const other = column.tabs[next];
      if (other !== undefined) {
        this.bring(other.tab, false);
        other.handle.focus();
      }
    } else if (event.key === "Delete") {
      this.close(here.tab);
    } else if (event.key === "Enter" || event.key === " ") {
      this.bring(here.tab);
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** A row of buttons over what a tab shows. */
export function toolbar(label: string, ...items: (Node | undefined)[]): HTMLElement {
  return h("div", { class: "toolbar", role: "toolbar", "aria-label": label }, ...items);
}
