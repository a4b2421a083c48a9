/** The memory of a plan over its steps: a picture, which is a slider for the keyboard. */

import { h, s } from "../dom";
import type { MemoryPlan } from "../results";
import * as units from "../../units";
import { areaPaths, legendOf, spoken, stepAt, type AtStep } from "./model";

export class Chart {
  readonly element: HTMLElement;
  readonly slider: HTMLElement;
  private readonly mark: HTMLElement;
  private step = 0;

  constructor(
    private readonly plan: MemoryPlan,
    private readonly choose: (step: number) => void,
  ) {
    const steps = plan.steps.length;
    this.mark = h("div", { class: "step-mark", "aria-hidden": true });
    const peak = h("span", {}, `peak ${units.size(Math.max(1, ...plan.live))}`);
    this.slider = h(
      "div",
      {
        class: "chart",
        tabindex: 0,
        role: "slider",
        "aria-label": plan.measured ? "Time in the measured step" : "Step of the schedule",
        "aria-valuemin": 1,
        "aria-valuemax": steps,
        "aria-orientation": "horizontal",
      },
      areas(plan),
      h("div", { class: "peak-line", "aria-hidden": true }, peak),
      this.mark,
    );
    this.listen();
    this.element = h("div", { class: "chart-side" }, this.slider, axis(plan));
  }

  /** Marks a step. */
  show(at: AtStep): void {
    this.step = at.step;
    const steps = this.plan.steps.length;
    this.slider.setAttribute("aria-valuenow", String(at.step + 1));
    this.slider.setAttribute("aria-valuetext", spoken(this.plan, at));
    this.mark.style.setProperty("left", `${((100 * at.step) / steps).toFixed(3)}%`);
    this.mark.style.setProperty("width", `max(2px, ${(100 / steps).toFixed(3)}%)`);
  }

  private listen(): void {
    const steps = this.plan.steps.length;
    this.slider.addEventListener("keydown", (event) => {
      const wanted = stepAt(event.key, this.step, steps);
      if (wanted !== undefined) {
        this.choose(wanted);
        event.preventDefault();
      }
    });
    const pick = (event: PointerEvent): void => {
      const box = this.slider.getBoundingClientRect();
      if (box.width > 0) {
        this.choose(Math.floor(((event.clientX - box.left) / box.width) * steps));
      }
    };
    this.slider.addEventListener("pointerdown", (event) => {
      this.slider.setPointerCapture(event.pointerId);
      pick(event);
    });
    this.slider.addEventListener("pointermove", (event) => event.buttons === 1 && pick(event));
  }
}

function areas(plan: MemoryPlan): SVGSVGElement {
  const svg = s("svg", {
    viewBox: "0 0 1000 1000",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    class: "areas",
  });
  svg.append(...areaPaths(plan).map(({ category, path }) => s("path", { class: `area ${category}`, d: path })));
  return svg;
}

function axis(plan: MemoryPlan): HTMLElement {
  const [begin, end] = plan.measured ? ["begin", "end"] : ["first call", "last call"];
  const legend = legendOf(plan).map(({ category, title, hint }) =>
    h("span", { class: `key ${category}`, title: hint }, title),
  );
  return h(
    "div",
    { class: "axis", "aria-hidden": true },
    h("span", {}, begin),
    h("span", { class: "legend" }, ...legend),
    h("span", {}, end),
  );
}
