/** A flame graph: boxes that are zoomed and searched, and that are a tree for the keyboard and for screen readers. */

import { button, h, setText } from "../dom";
import { amount, valueOf, type Box } from "./box";
import {
  around,
  boxAt,
  draggedSpan,
  drawnBoxes,
  matchesOf,
  matchText,
  ticksOf,
  zoomedBy,
  type Drawn,
  type Span,
} from "./flame";

const ROW_PIXELS = 20;
/** A pointer that moved at least this far draws a range and does not click. */
const DRAG_PIXELS = 4;

/** What is said of boxes, and how they look. */
export interface Words {
  /** The label of the whole chart, for a screen reader. */
  label: string;
  /** What the boxes are, one and many of them: for the search. */
  noun: [one: string, many: string];
  /** Classes of a box: its colour. */
  classOf(box: Box): string;
  titleOf(box: Box): string;
  /** What a screen reader says of a box. */
  spoken(box: Box, whole: Box): string;
  /** What the line below the chart says. */
  told(box: Box, whole: Box): HTMLElement[];
}

export class FlameChart {
  private readonly chart: HTMLElement;
  private readonly ruler = h("div", { class: "ruler", "aria-hidden": true });
  /** The box under the pointer. */
  private readonly dragged = h("div", { class: "dragged", hidden: true });
  readonly search: HTMLInputElement;
  readonly found = h("span", { class: "dim", role: "status" });
  readonly zoomOut = button("Zoom Out", () => this.zoom(this.boxes[0]), { title: "Show all" });
  private readonly told = h("div", { class: "statusline", "aria-live": "polite" });
  /** What goes into the page, from top to bottom. */
  readonly elements: HTMLElement[];
  private boxes: Box[] = [];
  private zoomed: Span | undefined;
  private matches: Box[] = [];
  private current: Box | undefined;
  private drawn = new Map<Box, HTMLElement>();
  private readonly boxesOf = new WeakMap<Element, Box>();
  private unit = "seconds";

  /** @param body gives the width where the chart is not laid out yet */
  constructor(
    private readonly words: Words,
    private readonly body: HTMLElement,
  ) {
    const searchLabel = `Search ${words.noun[1]}`;
    this.chart = h("div", { class: "flame", role: "tree", "aria-label": words.label });
    this.search = h("input", {
      class: "search",
      type: "search",
      placeholder: searchLabel,
      "aria-label": searchLabel,
    });
    this.elements = [this.ruler, h("div", { class: "scroll" }, this.chart), this.told];
    new ResizeObserver(() => this.chart.isConnected && this.boxes.length > 1 && this.draw()).observe(body);
    this.chart.addEventListener("keydown", (event) => this.onKey(event));
    this.chart.addEventListener("mousemove", ({ target }) => this.tell(this.boxOf(target) ?? this.current));
    this.chart.addEventListener("mouseleave", () => this.tell(this.current));
    this.search.addEventListener("input", () => this.mark());
    this.search.addEventListener("keydown", (event) => this.onSearchKey(event));
    this.listenToPointer();
    this.chart.addEventListener("focusin", ({ target }) => {
      this.current = this.boxOf(target) ?? this.current;
      this.tell(this.current);
    });
  }

  /** Other boxes, parents before children; the first one is the whole. They are drawn by `draw`. */
  take(boxes: Box[], unit = "seconds"): void {
    this.unit = unit;
    this.boxes = boxes;
    this.zoomed = this.current = boxes[0];
    this.matches = matchesOf(boxes, this.search.value);
  }

  /** The box that has the keyboard's focus. */
  get focused(): HTMLElement | null {
    return this.chart.querySelector<HTMLElement>("[tabindex='0']");
  }

  draw(): void {
    const [all] = this.boxes;
    const span = this.zoomed ?? all;
    if (span === undefined || all === undefined) {
      return;
    }
    const width = this.chart.clientWidth || this.body.clientWidth;
    const boxes = drawnBoxes(this.boxes, span, width);
    this.drawn = new Map(boxes.map((each) => [each.box, this.boxElement(each, all)]));
    const deepest = Math.max(0, ...boxes.map(({ box }) => box.depth));
    const hadFocus = this.chart.contains(document.activeElement);
    this.chart.style.setProperty("height", `${(deepest + 1) * ROW_PIXELS + 2}px`);
    this.chart.replaceChildren(...this.drawn.values(), this.dragged);
    const ticks = ticksOf(span, width, this.unit).map(({ left, text }) =>
      h("span", { style: { left: `${left}px` } }, text),
    );
    this.ruler.replaceChildren(...ticks);
    this.zoomOut.disabled = span.size >= all.size;
    this.mark();
    this.current = this.current !== undefined && this.drawn.has(this.current) ? this.current : (boxes[0]?.box ?? all);
    const item = this.drawn.get(this.current);
    if (item !== undefined) {
      item.tabIndex = 0;
      if (hadFocus) {
        item.focus({ preventScroll: true });
      }
    }
    this.tell(this.current);
  }

  private boxElement({ box, left, width, above }: Drawn, whole: Box): HTMLElement {
    const item = h(
      "div",
      {
        class: `box ${this.words.classOf(box)}${above ? " above" : ""}`,
        tabindex: -1,
        role: "treeitem",
        "aria-level": box.depth + 1,
        "aria-label": this.words.spoken(box, whole),
        ...(box.children.length > 0 ? { "aria-expanded": "true" } : {}),
        style: { left: `${left}px`, width: `${Math.max(1, width - 1)}px`, top: `${box.depth * ROW_PIXELS}px` },
      },
      width > 34 ? `${this.words.titleOf(box)} ${width > 120 ? amount(valueOf(box), this.unit) : ""}` : "",
    );
    this.boxesOf.set(item, box);
    return item;
  }

  private boxOf(target: EventTarget | null): Box | undefined {
    return target instanceof Element ? this.boxesOf.get(target) : undefined;
  }

  private tell(box: Box | undefined): void {
    const whole = this.boxes[0];
    if (box !== undefined && whole !== undefined) {
      this.told.replaceChildren(...this.words.told(box, whole));
    }
  }

  private zoom(span: Span | undefined): void {
    this.zoomed = span ?? this.boxes[0];
    this.draw();
    this.tell(this.current);
    if (document.activeElement !== this.search) {
      const item = this.current === undefined ? undefined : this.drawn.get(this.current);
      item?.focus({ preventScroll: true });
    }
  }

  private onKey(event: KeyboardEvent): void {
    const { current } = this;
    if (current === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      this.zoom(current);
    } else if (event.key === "Escape") {
      this.zoom(this.zoomed && around(this.boxes, this.zoomed));
    } else if (event.key === "+" || event.key === "-") {
      const [all] = this.boxes;
      this.zoom(all && zoomedBy(this.zoomed ?? all, current, event.key === "+" ? 0.5 : 2, all));
    } else if (/^(Arrow(Up|Down|Left|Right)|Home)$/.test(event.key)) {
      this.moveTo(boxAt(event.key, current, this.boxes, (box) => this.drawn.has(box)));
    } else {
      return;
    }
    event.preventDefault();
  }

  // --- the pointer ---

  /** A click zooms in on a box; moving the pointer with the button down selects a range of the chart. */
  private listenToPointer(): void {
    let from: number | undefined;
    const at = ({ clientX }: MouseEvent): number => clientX - this.chart.getBoundingClientRect().left;
    const isDrag = (event: MouseEvent): boolean => from !== undefined && Math.abs(at(event) - from) >= DRAG_PIXELS;
    this.chart.addEventListener("pointerdown", (event) => (from = event.button === 0 ? at(event) : undefined));
    this.chart.addEventListener("pointermove", (event) => {
      if (from !== undefined && isDrag(event)) {
        this.chart.setPointerCapture(event.pointerId);
        this.dragged.hidden = false;
        this.dragged.style.setProperty("left", `${Math.min(from, at(event))}px`);
        this.dragged.style.setProperty("width", `${Math.abs(at(event) - from)}px`);
      }
    });
    this.chart.addEventListener("pointerup", (event) => {
      const box = this.boxOf(event.target);
      if (from !== undefined && isDrag(event) && this.zoomed !== undefined) {
        this.zoom(draggedSpan(this.zoomed, from, at(event), this.chart.clientWidth));
      } else if (from !== undefined && box !== undefined) {
        this.current = box;
        this.zoom(box);
      }
    });
    for (const type of ["pointerup", "pointercancel"] as const) {
      this.chart.addEventListener(type, () => {
        from = undefined;
        this.dragged.hidden = true;
      });
    }
  }

  // --- search ---

  private onSearchKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.search.value = "";
      this.mark();
    } else if (event.key === "Enter" && this.matches.length > 0) {
      const by = event.shiftKey ? -1 : 1;
      const before = this.current === undefined ? -1 : this.matches.indexOf(this.current);
      const next = this.matches[(Math.max(before, by > 0 ? -1 : 0) + by + this.matches.length) % this.matches.length];
      this.current = next;
      if (next !== undefined && !this.drawn.has(next)) {
        this.zoom(next);
      }
      this.mark();
      this.tell(next);
    } else {
      return;
    }
    event.preventDefault();
  }

  private mark(): void {
    const { value } = this.search;
    this.matches = matchesOf(this.boxes, value);
    const hits = new Set(this.matches);
    for (const [box, item] of this.drawn) {
      item.classList.toggle("faded", value.trim() !== "" && !hits.has(box));
      item.classList.toggle("at", hits.has(box) && box === this.current);
    }
    setText(this.found, matchText(this.matches, value, this.words.noun, this.unit));
  }

  private moveTo(next: Box | undefined): void {
    const item = next === undefined ? undefined : this.drawn.get(next);
    if (item !== undefined && this.current !== undefined) {
      this.drawn.get(this.current)?.setAttribute("tabindex", "-1");
      this.current = next;
      item.tabIndex = 0;
      item.focus();
    }
  }
}
