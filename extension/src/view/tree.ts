/** A tree that is walked with the keys, as the tree views of editors are. */

import { announce, h } from "../panels/dom";
import { iconOf, type IconName } from "./widgets";

export interface Row {
  /** Unlike that of any other row. */
  id: string;
  label: string;
  /** Behind the label, dimmed. */
  detail?: string;
  tooltip?: string;
  icon: IconName;
  /** Colour of the icon, by what it means. */
  tone?: "good" | "bad" | "warning" | "busy" | undefined;
  /** What a screen reader says before the label, where an icon shows it. */
  spoken?: string;
  /** Nothing: a leaf. */
  children?: () => Promise<Row[]>;
  /** The IDs of its children, where a row in it is revealed by its own ID alone. */
  holds?: ReadonlySet<string>;
  open?: (beside: boolean) => void;
}

interface Shown {
  row: Row;
  level: number;
  parent: string | undefined;
  place: number;
  siblings: number;
}

export class Tree {
  readonly element: HTMLElement;
  private readonly expanded = new Set<string>();
  private readonly children = new Map<string, Row[]>();
  private shown: Shown[] = [];
  private roots: Row[] = [];
  private focused: string | undefined;
  private selected: string | undefined;
  private typed = "";
  private typedAt = 0;

  constructor(label: string) {
    this.element = h("div", { role: "tree", "aria-label": label, class: "tree" });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (event) => this.click(event));
  }

  /** Shows other rows; what was expanded stays so, and is requested again. */
  async show(roots: Row[]): Promise<void> {
    this.roots = roots;
    await this.reload(roots);
    this.draw();
  }

  /** Expands rows one below the other and selects the last that there is. */
  async reveal(...path: string[]): Promise<void> {
    for (const id of path.slice(0, -1)) {
      await this.open(this.find(id)?.row);
    }
    const wanted = path.at(-1) ?? "";
    await this.open(this.shown.find(({ row }) => row.holds?.has(wanted))?.row);
    const last = path.reverse().find((id) => this.find(id) !== undefined);
    if (last !== undefined) {
      this.selected = last;
      this.focused = last;
      this.draw();
      this.element.querySelector(".row.selected")?.scrollIntoView({ block: "nearest" });
    }
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("[tabindex='0']")?.focus();
  }

  private async reload(rows: Row[]): Promise<void> {
    for (const row of rows) {
      if (this.expanded.has(row.id) && row.children !== undefined) {
        const children = await row.children();
        this.children.set(row.id, children);
        await this.reload(children);
      }
    }
  }

  private find(id: string | undefined): Shown | undefined {
    return this.shown.find(({ row }) => row.id === id);
  }

  private async open(row: Row | undefined): Promise<void> {
    if (row !== undefined && !this.expanded.has(row.id)) {
      await this.expand(row);
    }
  }

  private async expand(row: Row): Promise<void> {
    if (row.children === undefined) {
      return;
    }
    this.expanded.add(row.id);
    this.children.set(row.id, await row.children());
    this.draw();
  }

  private collapse(row: Row): void {
    this.expanded.delete(row.id);
    this.draw();
  }

  private draw(): void {
    this.shown = [];
    this.collect(this.roots, 1, undefined);
    if (this.find(this.focused) === undefined) {
      this.focused = this.shown[0]?.row.id;
    }
    const hadFocus = this.element.contains(document.activeElement);
    this.element.replaceChildren(...this.shown.map((each) => this.elementOf(each)));
    if (hadFocus) {
      this.focus();
    }
  }

  private collect(rows: Row[], level: number, parent: string | undefined): void {
    rows.forEach((row, index) => {
      this.shown.push({ row, level, parent, place: index + 1, siblings: rows.length });
      if (this.expanded.has(row.id)) {
        this.collect(this.children.get(row.id) ?? [], level + 1, row.id);
      }
    });
  }

  private elementOf({ row, level, place, siblings }: Shown): HTMLElement {
    const expandable = row.children !== undefined;
    const isOpen = this.expanded.has(row.id);
    const made = h(
      "div",
      {
        role: "treeitem",
        class: `row${row.id === this.selected ? " selected" : ""}`,
        "data-id": row.id,
        "aria-level": String(level),
        "aria-posinset": String(place),
        "aria-setsize": String(siblings),
        "aria-selected": String(row.id === this.selected),
        "aria-expanded": expandable ? String(isOpen) : undefined,
        tabindex: row.id === this.focused ? "0" : "-1",
        title: row.tooltip,
      },
      h("span", { class: `twist${isOpen ? " open" : ""}` }, expandable ? iconOf("chevron") : undefined),
      iconOf(row.icon),
      row.spoken === undefined ? undefined : h("span", { class: "only-read" }, `${row.spoken} `),
      h("span", { class: "label" }, row.label),
      h("span", { class: "detail" }, row.detail),
    );
    made.style.setProperty("--level", String(level - 1));
    if (row.tone !== undefined) {
      made.dataset["tone"] = row.tone;
    }
    return made;
  }

  private focusOn(id: string | undefined): void {
    if (id === undefined) {
      return;
    }
    this.focused = id;
    for (const each of this.element.querySelectorAll<HTMLElement>(".row")) {
      each.tabIndex = each.dataset["id"] === id ? 0 : -1;
    }
    this.focus();
    this.element.querySelector("[tabindex='0']")?.scrollIntoView({ block: "nearest" });
  }

  private activate(row: Row, beside: boolean): void {
    if (row.open === undefined) {
      void (this.expanded.has(row.id) ? this.collapse(row) : this.expand(row));
      return;
    }
    this.selected = row.id;
    this.focused = row.id;
    if (row.children !== undefined && !this.expanded.has(row.id)) {
      void this.expand(row);
    }
    row.open(beside);
    this.draw();
  }

  private click(event: MouseEvent): void {
    const target = event.target as Element;
    const shown = this.find(target.closest<HTMLElement>(".row")?.dataset["id"]);
    if (shown === undefined) {
      return;
    }
    this.focusOn(shown.row.id);
    if (target.closest(".twist") !== null && shown.row.children !== undefined) {
      void (this.expanded.has(shown.row.id) ? this.collapse(shown.row) : this.expand(shown.row));
    } else {
      this.activate(shown.row, event.ctrlKey || event.metaKey || event.altKey);
    }
  }

  private key(event: KeyboardEvent): void {
    const at = this.shown.findIndex(({ row }) => row.id === this.focused);
    const here = this.shown[at];
    if (here === undefined) {
      return;
    }
    const isOpen = this.expanded.has(here.row.id);
    switch (event.key) {
      case "ArrowDown":
        this.focusOn(this.shown[at + 1]?.row.id);
        break;
      case "ArrowUp":
        this.focusOn(this.shown[at - 1]?.row.id);
        break;
      case "Home":
        this.focusOn(this.shown[0]?.row.id);
        break;
      case "End":
        this.focusOn(this.shown.at(-1)?.row.id);
        break;
      case "ArrowRight":
        if (here.row.children !== undefined && !isOpen) {
          void this.expand(here.row).then(() => announce(`${here.row.label} expanded`));
        } else if (isOpen) {
          this.focusOn(this.shown[at + 1]?.row.id);
        }
        break;
      case "ArrowLeft":
        if (isOpen) {
          this.collapse(here.row);
        } else {
          this.focusOn(here.parent);
        }
        break;
      case "Enter":
      case " ":
        this.activate(here.row, event.altKey || event.ctrlKey || event.metaKey);
        break;
      default:
        if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) {
          return;
        }
        this.jump(event.key, at);
    }
    event.preventDefault();
  }

  /** To the next row that begins with what is typed. */
  private jump(key: string, at: number): void {
    const now = Date.now();
    this.typed = now - this.typedAt < 800 ? this.typed + key : key;
    this.typedAt = now;
    const start = this.typed.length > 1 ? at : at + 1;
    const order = [...this.shown.slice(start), ...this.shown.slice(0, start)];
    this.focusOn(order.find(({ row }) => row.label.toLowerCase().startsWith(this.typed.toLowerCase()))?.row.id);
  }
}
