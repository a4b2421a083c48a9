/** The memory of a compile over its schedule: the peak, and what holds it. */

import * as bridge from "../bridge";
import { button, h, select } from "../dom";
import { visible } from "../visible";
import type { Subject } from "../messages";
import type { Memory, MemoryBuffer, MemoryPlan } from "../results";
import { Loader, memory, notice, percent, placeLink, runButton, type Surroundings, type View } from "../view";
import { plural } from "../../format";
import { areas, CATEGORIES } from "./chart";

interface Remembered {
  memoryPlan?: number;
}

export function createMemory(surroundings: Surroundings): View {
  const toolbar = h("div", { class: "toolbar" });
  const body = h("div", { class: "body memory-body" });
  const element = h("section", { class: "view" }, toolbar, body);
  const holders = h("div", {
    class: "holders",
    attributes: { role: "region", "aria-label": "Buffers at the chosen step" },
  });

  let subject: Subject | undefined;
  let data: Memory | undefined;
  let which = bridge.recall<Remembered>().memoryPlan ?? 0;
  let step = 0;
  let slider: HTMLElement | undefined;
  const loader = new Loader<Memory>(body, "the memory plan", (result) => {
    data = result;
    which = Math.min(which, Math.max(0, result.plans.length - 1));
    draw();
  });

  function load(): void {
    if (subject !== undefined) {
      const run = subject.deep ?? subject.run;
      void loader.load("irscope/memory", {
        run,
        ...(subject.compile === undefined ? {} : { compile: subject.compile }),
      });
    }
  }

  function draw(): void {
    if (data === undefined) {
      return;
    }
    const plan = data.plans[which];
    drawToolbar(data, plan);
    if (plan === undefined) {
      body.replaceChildren(notice("No memory plan to show.", data.reason, runButton()));
      return;
    }
    if (plan.steps.length === 0) {
      body.replaceChildren(notice("This graph calls no kernel.", "It allocates nothing of its own."));
      return;
    }
    step = plan.peak;
    body.replaceChildren(chart(plan), holders);
    choose(plan, step);
  }

  function drawToolbar(result: Memory, plan: MemoryPlan | undefined): void {
    const compiles = result.compiles.map((one) => ({ value: one.id, text: `${one.id} ${one.function}` }));
    const chooser = select("Compile", compiles, result.compile ?? undefined, (id) => {
      if (subject !== undefined) {
        subject = { ...subject, compile: id };
        surroundings.choseCompile(id);
        load();
      }
    });
    const plans = h(
      "div",
      { class: "segmented", attributes: { role: "group", "aria-label": "Memory plan" } },
      ...result.plans.map((one, index) =>
        button(
          /backward/i.test(one.title) ? "Backward" : "Forward",
          () => {
            which = index;
            bridge.remember<Remembered>({ memoryPlan: which });
            draw();
            toolbar.querySelectorAll<HTMLElement>(".segmented button")[index]?.focus();
          },
          { attributes: { "aria-pressed": index === which } },
        ),
      ),
    );
    const peak = plan === undefined ? 0 : (plan.live[plan.peak] ?? 0);
    toolbar.replaceChildren(
      ...(compiles.length > 0 ? [chooser] : []),
      ...(result.plans.length > 1 ? [plans] : []),
      ...(plan === undefined
        ? []
        : [
            h(
              "span",
              {},
              "peak ",
              h("strong", {}, memory(peak)),
              h("span", { class: "dim" }, ` beside ${memory(plan.inputs)} of inputs`),
            ),
            button("Go to Peak", () => choose(plan, plan.peak, true)),
            button("Open Plan", () => bridge.open({ uri: plan.uri, line: 0 })),
          ]),
    );
  }

  function chart(plan: MemoryPlan): HTMLElement {
    const steps = plan.steps.length;
    const most = Math.max(1, ...plan.live);
    const at = (index: number): string => `${((100 * index) / steps).toFixed(3)}%`;
    slider = h(
      "div",
      {
        class: "chart",
        tabIndex: 0,
        attributes: {
          role: "slider",
          "aria-label": "Step of the schedule",
          "aria-valuemin": 1,
          "aria-valuemax": steps,
          "aria-orientation": "horizontal",
        },
      },
      areas(plan),
      h("div", { class: "peak-line", attributes: { "aria-hidden": true } }, h("span", {}, `peak ${memory(most)}`)),
      h("div", { class: "step-mark", style: { width: at(1) }, attributes: { "aria-hidden": true } }),
    );
    slider.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (by !== undefined) {
        choose(plan, step + by);
      } else if (event.key === "Home" || event.key === "End") {
        choose(plan, event.key === "Home" ? 0 : steps - 1);
      } else {
        return;
      }
      event.preventDefault();
    });
    const pick = (event: PointerEvent): void => {
      const box = slider?.getBoundingClientRect();
      if (box !== undefined && box.width > 0) {
        choose(plan, Math.floor(((event.clientX - box.left) / box.width) * steps));
      }
    };
    slider.addEventListener("pointerdown", (event) => {
      slider?.setPointerCapture(event.pointerId);
      pick(event);
    });
    slider.addEventListener("pointermove", (event) => event.buttons === 1 && pick(event));
    return h(
      "div",
      { class: "chart-side" },
      slider,
      h(
        "div",
        { class: "axis", attributes: { "aria-hidden": true } },
        h("span", {}, "first call"),
        h("span", { class: "legend" }, ...legend()),
        h("span", {}, "last call"),
      ),
    );
  }

  function choose(plan: MemoryPlan, wanted: number, focus = false): void {
    step = Math.min(Math.max(0, wanted), plan.steps.length - 1);
    const live = plan.live[step] ?? 0;
    const kernel = plan.steps[step] ?? "";
    slider?.setAttribute("aria-valuenow", String(step + 1));
    const told = visible(`Call ${step + 1} of ${plan.steps.length}, ${kernel}, ${memory(live)}`);
    slider?.setAttribute("aria-valuetext", told);
    const mark = slider?.querySelector<HTMLElement>(".step-mark");
    mark?.style.setProperty("left", `${((100 * step) / plan.steps.length).toFixed(3)}%`);
    mark?.style.setProperty("width", `max(2px, ${(100 / plan.steps.length).toFixed(3)}%)`);
    const holding = plan.buffers
      .filter((buffer) => buffer.category !== "borrowed" && buffer.first <= step && step <= buffer.last)
      .sort((a, b) => b.bytes - a.bytes);
    holders.replaceChildren(
      h(
        "h2",
        {},
        `Call ${step + 1} of ${plan.steps.length}`,
        step === plan.peak && h("span", { class: "chip" }, "peak"),
      ),
      h("p", { class: "dim kernel", title: kernel }, kernel),
      h("p", {}, h("strong", {}, memory(live)), ` in ${plural(holding.length, "buffer")}`),
      table(plan, holding, live),
    );
    if (focus) {
      slider?.focus();
    }
  }

  return {
    element,
    show(given) {
      const same =
        subject !== undefined &&
        (subject.deep ?? subject.run) === (given.deep ?? given.run) &&
        data?.compile === (given.compile ?? data?.compile);
      subject = given;
      if (!same || data === undefined) {
        load();
      }
    },
    refresh: load,
    focus() {
      (slider ?? toolbar.querySelector<HTMLElement>("select, button"))?.focus();
    },
  };
}

function legend(): HTMLElement[] {
  return CATEGORIES.map(({ category, title, hint }) => h("span", { class: `key ${category}`, title: hint }, title));
}

/** Rows that are drawn; more would only be scrolled past. */
const MOST_ROWS = 200;

function table(plan: MemoryPlan, holding: MemoryBuffer[], live: number): HTMLElement {
  const rest = holding.slice(MOST_ROWS);
  return h(
    "table",
    { class: "buffers" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["Buffer", "Bytes", "", "Made by", "Your line"].map((title) =>
          h("th", { attributes: { scope: "col" } }, title === "" ? h("span", { class: "only-read" }, "Share") : title),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      ...holding.slice(0, MOST_ROWS).map((buffer) =>
        h(
          "tr",
          {},
          h(
            "td",
            {},
            h("span", {
              class: `dot ${buffer.category}`,
              title: titleOf(buffer),
              attributes: { role: "img", "aria-label": titleOf(buffer) },
            }),
            button(buffer.name, () => bridge.open({ uri: plan.uri, line: buffer.line }), {
              class: "link code",
              title: `${buffer.dtype}, calls ${buffer.first + 1} to ${buffer.last + 1}`,
            }),
            buffer.how === "reuse" &&
              h("span", { class: "dim", title: `Takes over the memory of ${buffer.of}` }, ` ↺ ${buffer.of}`),
          ),
          h("td", { class: "number" }, memory(buffer.bytes)),
          h("td", { class: "number dim" }, percent(buffer.bytes, live)),
          h(
            "td",
            { class: "made", title: [buffer.module, buffer.kernel].filter((text) => text !== "").join("\n") },
            h("bdi", {}, buffer.module === "" ? buffer.kernel : buffer.module),
          ),
          h("td", { class: "lines" }, ...buffer.places.slice(0, 2).map((place) => placeLink(place))),
        ),
      ),
      rest.length > 0 &&
        h(
          "tr",
          {},
          h(
            "td",
            { class: "dim", attributes: { colspan: 5 } },
            `and ${plural(rest.length, "smaller one")}, ${memory(rest.reduce((sum, { bytes }) => sum + bytes, 0))}`,
          ),
        ),
    ),
  );
}

function titleOf({ category }: MemoryBuffer): string {
  return CATEGORIES.find((each) => each.category === category)?.title ?? category;
}
