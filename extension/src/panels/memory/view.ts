/** The memory of a compile over its schedule: the peak, and what holds it. */

import * as bridge from "../bridge";
import { button, h, select } from "../dom";
import { TreeView } from "../measures/treeView";
import type { Subject } from "../messages";
import type { Memory, MemoryBuffer, MemoryPlaces, MemoryPlan } from "../results";
import { Loader, notice, placeLink, runButton, type Surroundings, type View } from "../view";
import * as units from "../../units";
import type { Place } from "../../protocol";
import { Chart } from "./chart";
import { atStep, categoryTitle, placesOf, titleOf, type AtStep, type PlacesByBuffer } from "./model";

const PARTS = ["Chart", "Modules", "Lines"] as const;
type Part = (typeof PARTS)[number];

interface Remembered {
  memoryPlan?: number;
  memoryPart?: Part;
}

export function create(surroundings: Surroundings): View {
  return new MemoryView(surroundings);
}

class MemoryView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly body = h("div", { class: "body memory-body" });
  readonly element = h("section", { class: "view" }, this.toolbar, this.body);
  private readonly holders = h("div", {
    class: "holders",
    role: "region",
    "aria-label": "Buffers at the chosen step",
  });
  private readonly trees = {
    Modules: new TreeView({ title: "Memory by module", noun: ["module", "modules"] }),
    Lines: new TreeView({ title: "Memory by line", noun: ["line", "lines"] }),
  };
  private part: Part = bridge.recall<Remembered>().memoryPart ?? "Chart";
  private subject: Subject | undefined;
  private data: Memory | undefined;
  private which = bridge.recall<Remembered>().memoryPlan ?? 0;
  private chart: Chart | undefined;
  private step = 0;
  /** Undefined until they have come, after the chart. */
  private places: MemoryPlaces | undefined;
  private readonly loader = new Loader<Memory>(this.body, "the memory plan", (result) => {
    this.data = result;
    this.which = Math.min(this.which, Math.max(0, result.plans.length - 1));
    this.draw();
    void this.readPlaces(result);
  });

  constructor(private readonly surroundings: Surroundings) {}

  show(given: Subject): void {
    const same =
      this.subject !== undefined &&
      (this.subject.deep ?? this.subject.run) === (given.deep ?? given.run) &&
      this.data?.compile === (given.compile ?? this.data?.compile);
    this.subject = given;
    if (!same || this.data === undefined) {
      this.refresh();
    }
  }

  refresh(): void {
    if (this.subject !== undefined) {
      const { run, deep, compile } = this.subject;
      void this.loader.load("irscope/memory", { run: deep ?? run, ...(compile === undefined ? {} : { compile }) });
    }
  }

  /** The user's lines: of a large graph they take longer than all the rest. */
  private async readPlaces({ run, compile }: Memory): Promise<void> {
    this.places = undefined;
    const given = this.data;
    try {
      const found = await bridge.request<MemoryPlaces>("irscope/memoryPlaces", { run, compile });
      const plan = this.data?.plans[this.which];
      if (given === this.data && plan !== undefined) {
        this.places = found;
        this.choose(plan, this.step);
      }
    } catch {
      // The table is complete without them.
    }
  }

  focus(): void {
    (this.chart?.slider ?? this.toolbar.querySelector<HTMLElement>("select, button"))?.focus();
  }

  private draw(): void {
    if (this.data === undefined) {
      return;
    }
    const plan = this.data.plans[this.which];
    this.drawToolbar(this.data, plan);
    if (plan === undefined) {
      this.body.replaceChildren(notice("No memory plan to show.", this.data.reason, runButton()));
      return;
    }
    if (plan.steps.length === 0) {
      this.body.replaceChildren(notice("This graph calls no kernel.", "It allocates nothing."));
      return;
    }
    const part = partsOf(plan).includes(this.part) ? this.part : "Chart";
    this.body.classList.toggle("with-chart", part === "Chart");
    if (part !== "Chart") {
      const tree = part === "Modules" ? plan.modules : plan.lines;
      this.trees[part].take(tree, { title: "% of Peak", whole: tree.rows[0]?.whole[0] ?? 0 });
      this.body.replaceChildren(this.trees[part].element);
      this.trees[part].draw();
      return;
    }
    this.chart = new Chart(plan, (step) => this.choose(plan, step));
    this.body.replaceChildren(this.chart.element, this.holders);
    this.choose(plan, plan.peak);
  }

  private drawToolbar(result: Memory, plan: MemoryPlan | undefined): void {
    const compiles = result.compiles.map((one) => ({ value: one.id, text: `${one.id} ${one.function}` }));
    const chooser = select("Compile", compiles, result.compile ?? undefined, (id) => {
      if (this.subject !== undefined) {
        this.subject = { ...this.subject, compile: id };
        this.surroundings.choseCompile(id);
        this.refresh();
      }
    });
    this.toolbar.replaceChildren(
      ...(compiles.length > 0 ? [chooser] : []),
      ...(result.plans.length > 1 ? [this.planButtons(result.plans)] : []),
      ...(plan === undefined ? [] : this.planActions(plan)),
      ...(bridge.inEditor && !result.plans.some(({ measured }) => measured)
        ? [button("Measure Memory", () => bridge.post({ type: "profile", memory: true }))]
        : []),
    );
  }

  private planButtons(plans: MemoryPlan[]): HTMLElement {
    return h(
      "div",
      { class: "segmented", role: "group", "aria-label": "Memory plan" },
      ...plans.map((one, index) =>
        button(
          one.measured ? "Measured Step" : /backward/i.test(one.title) ? "Backward" : "Forward",
          () => {
            this.which = index;
            bridge.remember<Remembered>({ memoryPlan: index });
            this.draw();
            this.toolbar.querySelectorAll<HTMLElement>(".segmented button")[index]?.focus();
          },
          { "aria-pressed": index === this.which },
        ),
      ),
    );
  }

  private planActions(plan: MemoryPlan): HTMLElement[] {
    return [
      h(
        "span",
        {},
        "peak ",
        h("strong", {}, units.size(plan.live[plan.peak] ?? 0)),
        h("span", { class: "dim" }, ` ${plan.beside}`),
      ),
      button("Go to Peak", () => {
        this.part = "Chart";
        this.draw();
        this.chart?.slider.focus();
      }),
      ...(plan.uri === "" ? [] : [button("Open Plan", () => bridge.open({ uri: plan.uri, line: 0 }))]),
      h("span", { class: "parts" }, ...partsOf(plan).map((part) => this.partButton(part))),
    ];
  }

  private partButton(part: Part): HTMLElement {
    const choose = (): void => {
      this.part = part;
      bridge.remember<Remembered>({ memoryPart: part });
      this.draw();
      this.toolbar.querySelector<HTMLElement>(`[data-part="${part}"]`)?.focus();
    };
    return button(part, choose, { class: "toggle", "data-part": part, "aria-pressed": this.part === part });
  }

  private choose(plan: MemoryPlan, wanted: number): void {
    const at = atStep(plan, wanted);
    this.step = at.step;
    this.chart?.show(at);
    this.holders.replaceChildren(
      h("h2", {}, titleOf(plan, at), at.isPeak && h("span", { class: "chip" }, "peak")),
      ...(plan.measured ? [] : [h("p", { class: "dim kernel", title: at.kernel }, at.kernel)]),
      h("p", {}, h("strong", {}, units.size(at.live)), heldWords(plan, at)),
      table(plan, at, placesOf(plan, this.places)),
    );
  }
}

/** A plan has its modules, a measured step the calls that lead to each line, too. */
function partsOf({ modules, lines }: MemoryPlan): Part[] {
  const has = { Chart: true, Modules: modules.rows.length > 1, Lines: lines.rows.length > 1 };
  return PARTS.filter((part) => has[part]);
}

/** In a measured step, only what is held at its peak has a row. */
function heldWords({ measured }: MemoryPlan, { live, count, largest, rest }: AtStep): string {
  const others = live - rest.bytes - largest.reduce((sum, { bytes }) => sum + bytes, 0);
  const more = measured && others > 0 ? `, and ${units.size(others)} that are not held at the peak` : "";
  return ` in ${units.count(count, measured ? "row" : "buffer")}${more}`;
}

function table(plan: MemoryPlan, { largest, rest, live }: AtStep, places: PlacesByBuffer): HTMLElement {
  const titles = ["Buffer", "Bytes", "", "Made by", "Your line"];
  const heads = titles.map((title) =>
    h("th", { scope: "col" }, title === "" ? h("span", { class: "only-read" }, "Share") : title),
  );
  const more = `and ${units.count(rest.count, "smaller one")}, ${units.size(rest.bytes)}`;
  return h(
    "table",
    { class: "buffers" },
    h("thead", {}, h("tr", {}, ...heads)),
    h(
      "tbody",
      {},
      ...largest.map((buffer) => row(plan, buffer, live, places.get(buffer.name) ?? buffer.places)),
      rest.count > 0 && h("tr", {}, h("td", { class: "dim", colspan: titles.length }, more)),
    ),
  );
}

function row(plan: MemoryPlan, buffer: MemoryBuffer, live: number, places: Place[]): HTMLElement {
  const category = categoryTitle(buffer);
  const uri = buffer.uri === "" ? plan.uri : buffer.uri;
  const made = `${buffer.dtype}, calls ${buffer.first + 1} to ${buffer.last + 1}, made by ${buffer.module || buffer.kernel}`;
  return h(
    "tr",
    {},
    h(
      "td",
      {},
      h("span", {
        class: `dot ${buffer.category}`,
        title: category,
        role: "img",
        "aria-label": category,
      }),
      uri === ""
        ? h("code", {}, buffer.name)
        : button(buffer.name, () => bridge.open({ uri, line: buffer.line }), {
            class: "link code",
            title: plan.measured ? `Open the output code that allocates it` : made,
          }),
      buffer.how === "reuse" &&
        h("span", { class: "dim", title: `Reuses the memory of ${buffer.of}` }, ` ↺ ${buffer.of}`),
    ),
    h("td", { class: "number" }, units.size(buffer.bytes)),
    h("td", { class: "number dim" }, units.percent(buffer.bytes, live)),
    h(
      "td",
      { class: "made", title: [buffer.module, buffer.kernel].filter((text) => text !== "").join("\n") },
      h(
        "bdi",
        {},
        plan.measured ? [buffer.kernel, buffer.module].filter(Boolean).join(", ") : buffer.module || buffer.kernel,
      ),
    ),
    h("td", { class: "lines" }, ...places.slice(0, 2).map((place) => placeLink(place))),
  );
}
