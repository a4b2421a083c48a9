/** Where the compile time went: a flame chart whose boxes are a tree for the keyboard and for screen readers. */

import { button, h } from "../dom";
import type { Subject } from "../messages";
import type { Phases } from "../results";
import { Loader, notice, percent, runButton, seconds, type View } from "../view";
import { plural } from "../../format";
import { layOut, type Box } from "./layout";

const ROW_PIXELS = 20;
/** Narrower boxes are not drawn until somebody zooms in on what is around them. */
const LEAST_PIXELS = 1.5;
/** PyTorch's names of what belongs to which part of the compiler, the innermost part last. */
const PARTS: { part: string; title: string; pattern: RegExp }[] = [
  { part: "dynamo", title: "Dynamo", pattern: /^(dynamo|bytecode|build_guards|compile_attempt|entire_frame|gc$)/ },
  { part: "aot", title: "AOTAutograd", pattern: /^(create_aot|aot_|min_cut|_recursive_joint|entire_backward)/ },
  {
    part: "inductor",
    title: "Inductor",
    pattern: /^(compile_fx|inductor|fx_codegen|GraphLowering|Scheduler|_recursive_p|code_gen|PythonWrapper)/,
  },
  { part: "kernels", title: "kernels", pattern: /^(compile_file|async_compile|PyCodeCache|triton|Triton)/ },
];

export function createTime(): View {
  const toolbar = h("div", { class: "toolbar" });
  const chart = h("div", { class: "flame", attributes: { role: "tree", "aria-label": "Compile time by phase" } });
  const told = h("div", { class: "statusline", attributes: { "aria-live": "polite" } });
  const body = h("div", { class: "body time-body" });
  const element = h("section", { class: "view" }, toolbar, body);

  let subject: Subject | undefined;
  let data: Phases | undefined;
  let boxes: Box[] = [];
  let zoomed: Box | undefined;
  let current: Box | undefined;
  let drawn = new Map<Box, HTMLElement>();
  let asTable = false;
  const loader = new Loader<Phases>(body, "the compile times", (result) => {
    data = result;
    boxes = layOut(result);
    zoomed = current = boxes[0];
    draw();
  });
  new ResizeObserver(() => !asTable && boxes.length > 1 && drawChart()).observe(body);

  chart.addEventListener("keydown", onKey);
  chart.addEventListener("mousemove", ({ target }) => tell(boxOf(target) ?? current));
  chart.addEventListener("mouseleave", () => tell(current));
  chart.addEventListener("click", ({ target }) => {
    const box = boxOf(target);
    if (box !== undefined) {
      current = box;
      zoom(box);
    }
  });
  chart.addEventListener("focusin", ({ target }) => {
    current = boxOf(target) ?? current;
    tell(current);
  });

  function load(): void {
    if (subject !== undefined) {
      void loader.load("irscope/phases", { run: subject.deep ?? subject.run });
    }
  }

  function draw(): void {
    if (data === undefined) {
      return;
    }
    if (data.compiles.length === 0) {
      toolbar.replaceChildren();
      body.replaceChildren(notice("No compile times to show.", data.reason, runButton()));
      return;
    }
    const legend = PARTS.map(({ part, title }) => h("span", { class: `key ${part}` }, title));
    toolbar.replaceChildren(
      h("strong", {}, seconds(data.seconds)),
      h("span", { class: "dim" }, `in ${plural(data.compiles.length, "compile")}`),
      h("span", { class: "legend" }, ...legend, h("span", { class: "key beside" }, "other threads")),
      h("span", { class: "spacer" }),
      button("Zoom Out", () => zoom(boxes[0]), {
        disabled: asTable || zoomed === boxes[0],
        title: "Show all compiles (Escape)",
      }),
      button(asTable ? "Chart" : "Table", () => {
        asTable = !asTable;
        draw();
      }),
    );
    if (asTable) {
      body.replaceChildren(h("div", { class: "scroll" }, table(boxes)));
    } else {
      body.replaceChildren(h("div", { class: "scroll" }, chart), told);
      drawChart();
      tell(current);
    }
  }

  function drawChart(): void {
    const whole = zoomed ?? boxes[0];
    if (whole === undefined) {
      return;
    }
    const width = chart.clientWidth || body.clientWidth;
    const scale = whole.seconds > 0 ? width / whole.seconds : 0;
    const above = new Set<Box>();
    for (let box: Box | undefined = whole; box !== undefined; box = box.parent) {
      above.add(box);
    }
    drawn = new Map();
    let deepest = 0;
    const made: HTMLElement[] = [];
    for (const box of boxes) {
      const left = above.has(box) ? 0 : (box.start - whole.start) * scale;
      const wide = above.has(box) ? width : box.seconds * scale;
      if (wide < LEAST_PIXELS || left + wide < 0 || left > width || !(above.has(box) || isInside(box, whole))) {
        continue;
      }
      const item = boxElement(
        box,
        Math.max(0, left),
        Math.min(wide, width - Math.max(0, left)),
        above.has(box) && box !== whole,
      );
      drawn.set(box, item);
      made.push(item);
      deepest = Math.max(deepest, box.depth);
    }
    const hadFocus = chart.contains(document.activeElement);
    chart.style.setProperty("height", `${(deepest + 1) * ROW_PIXELS + 2}px`);
    chart.replaceChildren(...made);
    current = current !== undefined && drawn.has(current) ? current : whole;
    const item = drawn.get(current);
    if (item !== undefined) {
      item.tabIndex = 0;
      if (hadFocus) {
        item.focus({ preventScroll: true });
      }
    }
  }

  function boxElement(box: Box, left: number, wide: number, isAbove: boolean): HTMLElement {
    const part = partOf(box);
    const title = box.label === "" ? box.name : capitalized(box);
    const item = h(
      "div",
      {
        class: `box ${part}${box.beside ? " beside" : ""}${isAbove ? " above" : ""}`,
        tabIndex: -1,
        attributes: {
          role: "treeitem",
          "aria-level": box.depth + 1,
          "aria-label": `${title} ${seconds(box.seconds)}, ${percent(box.seconds, boxes[0]?.seconds ?? 0)} of all${title === box.name ? "" : `, ${box.name}`}`,
          ...(box.children.length > 0 ? { "aria-expanded": "true" } : {}),
        },
        style: { left: `${left}px`, width: `${Math.max(1, wide - 1)}px`, top: `${box.depth * ROW_PIXELS}px` },
      },
      wide > 34 ? `${title} ${wide > 120 ? seconds(box.seconds) : ""}` : "",
    );
    elements.set(item, box);
    return item;
  }

  function tell(box: Box | undefined): void {
    const whole = boxes[0];
    if (box === undefined || whole === undefined) {
      return;
    }
    const parts = [
      h("code", {}, box.name),
      ...(box.label === "" ? [] : [h("span", {}, box.label)]),
      h("span", {}, h("strong", {}, seconds(box.seconds)), ` ${percent(box.seconds, whole.seconds)} of all`),
      ...(box.parent === undefined || box.beside
        ? []
        : [h("span", { class: "dim" }, `${percent(box.seconds, box.parent.seconds)} of ${box.parent.name}`)]),
      ...(box.children.length > 0 && box.own > 0
        ? [h("span", { class: "dim" }, `${seconds(box.own)} of its own`)]
        : []),
      ...(box.beside ? [h("span", { class: "dim" }, "in another thread")] : []),
    ];
    told.replaceChildren(...parts);
  }

  function zoom(box: Box | undefined): void {
    zoomed = box ?? boxes[0];
    draw();
    const item = current === undefined ? undefined : drawn.get(current);
    item?.focus({ preventScroll: true });
  }

  function onKey(event: KeyboardEvent): void {
    if (current === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const siblings = (current.parent?.children ?? []).filter((box) => drawn.has(box));
    const at = siblings.indexOf(current);
    let next: Box | undefined;
    switch (event.key) {
      case "ArrowUp":
        next = current.parent;
        break;
      case "ArrowDown":
        // The child that took most: where the time went.
        next = current.children.filter((box) => drawn.has(box)).sort((a, b) => b.seconds - a.seconds)[0];
        break;
      case "ArrowLeft":
      case "ArrowRight":
        next = siblings[at + (event.key === "ArrowRight" ? 1 : -1)];
        break;
      case "Home":
        next = boxes[0];
        break;
      case "Enter":
      case " ":
        zoom(current);
        break;
      case "Escape":
        zoom(zoomed?.parent ?? boxes[0]);
        break;
      default:
        return;
    }
    event.preventDefault();
    const item = next === undefined ? undefined : drawn.get(next);
    if (item !== undefined && next !== undefined) {
      drawn.get(current)?.setAttribute("tabindex", "-1");
      current = next;
      item.tabIndex = 0;
      item.focus();
    }
  }

  return {
    element,
    show(given) {
      const run = given.deep ?? given.run;
      const same = subject !== undefined && (subject.deep ?? subject.run) === run;
      subject = given;
      if (!same) {
        load();
      }
    },
    refresh: load,
    focus() {
      (chart.querySelector<HTMLElement>("[tabindex='0']") ?? toolbar.querySelector("button"))?.focus();
    },
  };
}

const elements = new WeakMap<Element, Box>();

function boxOf(target: EventTarget | null): Box | undefined {
  return target instanceof Element ? elements.get(target) : undefined;
}

function isInside(box: Box, whole: Box): boolean {
  for (let each: Box | undefined = box; each !== undefined; each = each.parent) {
    if (each === whole) {
      return true;
    }
  }
  return false;
}

/** The part of the compiler; what has no part of its own belongs to that of what is around it. */
function partOf(box: Box): string {
  for (let each: Box | undefined = box; each !== undefined && each.depth > 1; each = each.parent) {
    const { name } = each;
    const found = PARTS.find(({ pattern }) => pattern.test(name));
    if (found !== undefined) {
      return found.part;
    }
  }
  return box.depth === 1 ? "compile" : "whole";
}

function capitalized({ label }: Box): string {
  return label.charAt(0).toUpperCase() + label.slice(1);
}

/** The same as rows: phases of one name at one place added up, the longest first. */
function table(boxes: Box[]): HTMLElement {
  const whole = boxes[0]?.seconds ?? 0;
  interface Sum {
    name: string;
    label: string;
    depth: number;
    seconds: number;
    own: number;
    count: number;
    inside: Map<string, Sum>;
  }
  const root = new Map<string, Sum>();
  const sums = new Map<Box, Sum>();
  for (const box of boxes.slice(1)) {
    const siblings = box.parent === undefined ? root : (sums.get(box.parent)?.inside ?? root);
    const sum = siblings.get(box.name) ?? {
      name: box.name,
      label: box.label,
      depth: box.depth - 1,
      seconds: 0,
      own: 0,
      count: 0,
      inside: new Map(),
    };
    sum.seconds += box.seconds;
    sum.own += box.own;
    sum.count += 1;
    siblings.set(box.name, sum);
    sums.set(box, sum);
  }
  const rows: HTMLElement[] = [];
  const addRows = (siblings: Map<string, Sum>, depth: number): void => {
    for (const sum of [...siblings.values()].sort((a, b) => b.seconds - a.seconds)) {
      rows.push(
        h(
          "tr",
          {},
          h(
            "td",
            { class: "phase", style: { "--depth": String(depth) } },
            h("code", {}, sum.name),
            sum.count > 1 && ` ×${sum.count}`,
            h("span", { class: "dim" }, ` ${sum.label}`),
          ),
          h("td", { class: "number" }, seconds(sum.seconds)),
          h("td", { class: "number" }, seconds(sum.own)),
          h("td", { class: "number" }, percent(sum.seconds, whole)),
        ),
      );
      addRows(sum.inside, depth + 1);
    }
  };
  addRows(root, 0);
  return h(
    "table",
    { class: "phases" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["Phase", "Seconds", "Own", "Of all"].map((title) => h("th", { attributes: { scope: "col" } }, title)),
      ),
    ),
    h("tbody", {}, ...rows),
  );
}
