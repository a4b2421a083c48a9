/** A value as a picture, in a value session that is stopped: heat map, histogram, statistics, and slices of more dimensions. */

import { announce, h } from "../dom";
import type { Subject } from "../messages";
import { Loader, type View } from "../view";
import { facts, legend } from "./facts";
import { Heatmap } from "./heatmap";
import { cellText, isCompared, partText, shapeOf, tell, wholeOf, zoomed, type Answer, type Wish } from "./model";
import { controls } from "./toolbar";

export function create(): View {
  return new ValuesView();
}

class ValuesView implements View {
  private readonly toolbar = h("div", {
    class: "toolbar",
    role: "group",
    "aria-label": "What is shown",
  });
  private readonly body = h("div", { class: "body values-body" });
  readonly element = h("section", { class: "view values-view", "aria-label": "Value" }, this.toolbar, this.body);
  private readonly readout = h("p", { class: "readout code", role: "status", "aria-live": "polite" });
  private subject: Subject | undefined;
  private expression = "value";
  private wish: Wish = {};
  private map: Heatmap | undefined;
  private cell: [number, number] = [0, 0];
  private isZoomed = false;
  /** What gets the focus once the answer is there. */
  private back = "";
  private readonly loader = new Loader<Answer>(this.body, "the value", (answer) => this.draw(answer));

  show(given: Subject): void {
    this.subject = given;
    this.look(given.stage ?? this.expression);
  }

  refresh(): void {
    // Another frame: what was typed stays, as a watch does; a comparison was of the node that it was chosen at.
    this.look(isCompared(this.expression) ? (this.subject?.stage ?? this.expression) : this.expression);
  }

  focus(): void {
    (this.map?.element ?? this.toolbar.querySelector<HTMLElement>("input, select"))?.focus();
  }

  private load(): void {
    void this.loader.load("irscope/picture", { expression: this.expression, view: this.wish });
  }

  private ask(changes: Wish, focus: string): void {
    // A dimension on the rows or columns changes the content of a window.
    this.wish = changes.rows === undefined ? { ...this.wish, ...changes } : changes;
    this.back = focus;
    this.load();
  }

  private look(wanted: string, focus = this.back): void {
    this.back = focus;
    this.expression = wanted.trim() === "" ? "value" : wanted.trim();
    this.wish = {};
    this.cell = [0, 0];
    this.load();
  }

  private draw(answer: Answer): void {
    const { picture } = answer;
    const kept = this.isZoomed ? picture.size.map((count) => Math.floor(count / 2)) : this.cell;
    this.isZoomed = false;
    const asking = {
      look: (expression: string, focus: string) => this.look(expression, focus),
      ask: (changes: Wish, focus: string) => this.ask(changes, focus),
    };
    this.toolbar.replaceChildren(...controls(answer, this.expression, asking));
    const map = this.heatmapOf(answer);
    this.map = map;
    this.body.replaceChildren(
      h(
        "div",
        { class: "picture-side" },
        h("div", { class: "frame" }, map.element),
        this.readout,
        legend(map, picture),
        h("p", { class: "dim" }, partText(picture)),
      ),
      h("div", { class: "facts-side" }, ...facts(answer)),
    );
    const { min, max } = picture.statistics;
    const of = answer.node === "" ? answer.expression : answer.node;
    announce(`${of}: ${shapeOf(picture)}, from ${tell(min)} to ${tell(max)}`);
    map.choose(kept[0] ?? 0, kept[1] ?? 0);
    if (this.back !== "") {
      this.element.querySelector<HTMLElement>(this.back)?.focus();
      this.back = "";
    }
  }

  private heatmapOf({ picture, expression }: Answer): Heatmap {
    const theme = document.body.classList.contains("vscode-light") || isLight() ? "light" : "dark";
    return new Heatmap(
      picture,
      {
        chose: (row, column) => {
          this.cell = [row, column];
          const text = cellText(picture, row, column);
          if (this.readout.textContent !== text) {
            this.readout.textContent = text;
          }
        },
        zoom: (row, column, by) => {
          this.isZoomed = true;
          this.ask({ window: zoomed(picture, row, column, by) }, ".heatmap");
        },
        reset: () => this.ask({ window: wholeOf(picture) }, ".heatmap"),
      },
      { theme, isDifference: expression.includes(" - ") },
      `${expression}, ${shapeOf(picture)}; arrow keys move, plus and minus zoom, 0 shows all`,
    );
  }
}

/** Outside of VS Code, and in its high contrast themes, the background tells. */
function isLight(): boolean {
  const parts =
    getComputedStyle(document.body)
      .backgroundColor.match(/[\d.]+/g)
      ?.map(Number) ?? [];
  const [red = 0, green = 0, blue = 0] = parts;
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
}
