/** Where the compile time went: a flame chart whose boxes are a tree for the keyboard and for screen readers. */

import * as bridge from "../bridge";
import { button, h, setText } from "../dom";
import type { Subject } from "../messages";
import type { Phases } from "../results";
import { Loader, notice, runButton, type View } from "../view";
import * as units from "../../units";
import { layOut, type Box } from "./layout";
import {
  around,
  boxAt,
  draggedSpan,
  drawnBoxes,
  matchesOf,
  matchText,
  PARTS,
  partOf,
  remarks,
  spoken,
  sums,
  ticksOf,
  titleOf,
  zoomedBy,
  type Drawn,
  type Span,
} from "./model";

const ROW_PIXELS = 20;
/** The pointer is drawn, and does not click, from here on. */
const DRAG_PIXELS = 4;

interface Remembered {
  timeThreads?: boolean;
}

export function create(): View {
  return new TimeView();
}

class TimeView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly chart = h("div", {
    class: "flame",
    role: "tree",
    "aria-label": "Compile time by phase",
  });
  private readonly ruler = h("div", { class: "ruler", "aria-hidden": true });
  /** What the pointer is drawn over. */
  private readonly dragged = h("div", { class: "dragged", hidden: true });
  private readonly search = h("input", {
    class: "search",
    type: "search",
    placeholder: "Search phases",
    "aria-label": "Search phases",
  });
  private readonly found = h("span", { class: "dim", role: "status" });
  private readonly zoomOut = button("Zoom Out", () => this.zoom(this.boxes[0]), {
    title: "Show all compiles (Escape)",
  });
  private readonly told = h("div", { class: "statusline", "aria-live": "polite" });
  private readonly body = h("div", { class: "body time-body" });
  readonly element = h("section", { class: "view" }, this.toolbar, this.body);
  private subject: Subject | undefined;
  private data: Phases | undefined;
  private boxes: Box[] = [];
  private zoomed: Span | undefined;
  private withThreads = bridge.recall<Remembered>().timeThreads ?? true;
  private matches: Box[] = [];
  private current: Box | undefined;
  private drawn = new Map<Box, HTMLElement>();
  private readonly elements = new WeakMap<Element, Box>();
  private asTable = false;
  private readonly loader = new Loader<Phases>(this.body, "the compile times", (result) => {
    this.data = result;
    this.boxes = layOut(result);
    this.zoomed = this.current = this.boxes[0];
    this.matches = matchesOf(this.boxes, this.search.value);
    this.draw();
  });

  constructor() {
    new ResizeObserver(() => !this.asTable && this.boxes.length > 1 && this.drawChart()).observe(this.body);
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

  show(given: Subject): void {
    const run = given.deep ?? given.run;
    const same = this.subject !== undefined && (this.subject.deep ?? this.subject.run) === run;
    this.subject = given;
    if (!same) {
      this.refresh();
    }
  }

  refresh(): void {
    if (this.subject !== undefined) {
      void this.loader.load("irscope/phases", { run: this.subject.deep ?? this.subject.run });
    }
  }

  focus(): void {
    (this.chart.querySelector<HTMLElement>("[tabindex='0']") ?? this.toolbar.querySelector("button"))?.focus();
  }

  private draw(): void {
    if (this.data === undefined) {
      return;
    }
    if (this.data.compiles.length === 0) {
      this.toolbar.replaceChildren();
      this.body.replaceChildren(notice("No compile times to show.", this.data.reason, runButton()));
      return;
    }
    this.drawToolbar(this.data);
    if (this.asTable) {
      this.body.replaceChildren(h("div", { class: "scroll" }, table(this.boxes)));
    } else {
      this.body.replaceChildren(this.ruler, h("div", { class: "scroll" }, this.chart), this.told);
      this.drawChart();
      this.tell(this.current);
    }
  }

  private drawToolbar(data: Phases): void {
    const legend = PARTS.map(({ part, title }) => h("span", { class: `key ${part}` }, title));
    this.toolbar.replaceChildren(
      h("strong", {}, units.duration(data.seconds)),
      h("span", { class: "dim" }, `in ${units.count(data.compiles.length, "compile")}`),
      ...(this.asTable ? [] : [this.search, this.found]),
      h("span", { class: "legend" }, ...legend),
      h("span", { class: "spacer" }),
      ...(this.asTable ? [] : [...this.threadButton(), this.zoomOut]),
      button(this.asTable ? "Chart" : "Table", () => {
        this.asTable = !this.asTable;
        this.draw();
      }),
    );
  }

  /** Empty if one thread did all. */
  private threadButton(): HTMLElement[] {
    const toggle = button(
      "Other Threads",
      () => {
        this.withThreads = !this.withThreads;
        bridge.remember<Remembered>({ timeThreads: this.withThreads });
        toggle.setAttribute("aria-pressed", String(this.withThreads));
        this.drawChart();
      },
      { class: "toggle key beside", title: "What ran beside the compiling thread", "aria-pressed": this.withThreads },
    );
    return this.boxes.some(({ beside }) => beside) ? [toggle] : [];
  }

  private drawChart(): void {
    const [all] = this.boxes;
    const span = this.zoomed ?? all;
    if (span === undefined || all === undefined) {
      return;
    }
    const width = this.chart.clientWidth || this.body.clientWidth;
    const boxes = drawnBoxes(this.boxes, span, width, this.withThreads);
    this.drawn = new Map(boxes.map((each) => [each.box, this.boxElement(each)]));
    const deepest = Math.max(0, ...boxes.map(({ box }) => box.depth));
    const hadFocus = this.chart.contains(document.activeElement);
    this.chart.style.setProperty("height", `${(deepest + 1) * ROW_PIXELS + 2}px`);
    this.chart.replaceChildren(...this.drawn.values(), this.dragged);
    const ticks = ticksOf(span, width).map(({ left, text }) => h("span", { style: { left: `${left}px` } }, text));
    this.ruler.replaceChildren(...ticks);
    this.zoomOut.disabled = span.seconds >= all.seconds;
    this.mark();
    this.current = this.current !== undefined && this.drawn.has(this.current) ? this.current : (boxes[0]?.box ?? all);
    const item = this.drawn.get(this.current);
    if (item !== undefined) {
      item.tabIndex = 0;
      if (hadFocus) {
        item.focus({ preventScroll: true });
      }
    }
  }

  private boxElement({ box, left, width, above }: Drawn): HTMLElement {
    const item = h(
      "div",
      {
        class: `box ${partOf(box)}${box.beside ? " beside" : ""}${above ? " above" : ""}`,
        tabindex: -1,
        role: "treeitem",
        "aria-level": box.depth + 1,
        "aria-label": spoken(box, this.boxes[0]?.seconds ?? 0),
        ...(box.children.length > 0 ? { "aria-expanded": "true" } : {}),
        style: { left: `${left}px`, width: `${Math.max(1, width - 1)}px`, top: `${box.depth * ROW_PIXELS}px` },
      },
      width > 34 ? `${titleOf(box)} ${width > 120 ? units.duration(box.seconds) : ""}` : "",
    );
    this.elements.set(item, box);
    return item;
  }

  private boxOf(target: EventTarget | null): Box | undefined {
    return target instanceof Element ? this.elements.get(target) : undefined;
  }

  private tell(box: Box | undefined): void {
    const whole = this.boxes[0];
    if (box === undefined || whole === undefined) {
      return;
    }
    this.told.replaceChildren(
      h("code", {}, box.name),
      ...(box.label === "" ? [] : [h("span", {}, box.label)]),
      h(
        "span",
        {},
        h("strong", {}, units.duration(box.seconds)),
        ` ${units.percent(box.seconds, whole.seconds)} of all`,
      ),
      ...remarks(box).map((text) => h("span", { class: "dim" }, text)),
    );
  }

  private zoom(span: Span | undefined): void {
    this.zoomed = span ?? this.boxes[0];
    this.drawChart();
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

  /** A click zooms in on a box, drawing the pointer over the chart on what is drawn over. */
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
    setText(this.found, matchText(this.matches, value));
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

function table(boxes: Box[]): HTMLElement {
  const whole = boxes[0]?.seconds ?? 0;
  const titles = ["Phase", "Seconds", "Own", "Of all"];
  const rows = sums(boxes).map((sum) =>
    h(
      "tr",
      {},
      h(
        "td",
        { class: "phase", style: { "--depth": String(sum.depth) } },
        h("code", {}, sum.name),
        sum.count > 1 && ` ×${sum.count}`,
        h("span", { class: "dim" }, ` ${sum.label}`),
      ),
      h("td", { class: "number" }, units.duration(sum.seconds)),
      h("td", { class: "number" }, units.duration(sum.own)),
      h("td", { class: "number" }, units.percent(sum.seconds, whole)),
    ),
  );
  return h(
    "table",
    { class: "phases" },
    h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...rows),
  );
}
