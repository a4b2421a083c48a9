/** The pipeline of a compile as a row of stages, forward above backward, with what each pass changed. */

import * as bridge from "../bridge";
import { announce, button, h, select, setText } from "../dom";
import type { Subject } from "../messages";
import type { Pipeline, PipelineStage, Step } from "../results";
import { Loader, notice, runButton, type Surroundings, type View } from "../view";
import type { Place } from "../../protocol";
import { cardElement } from "./card";
import { details } from "./details";
import { endElement } from "./end";
import {
  cardsPerLine,
  cellsOf,
  compileText,
  firstChoice,
  kernelCount,
  neighbour,
  nextMatch,
  positionOf,
  previousOf,
  rowOf,
  stageOf,
  TRACK_NAMES,
} from "./model";
import { matchesOf, summaryOf } from "./search";

/** Arrow keys may be held down: a document is opened when they rest. */
const REST_MS = 180;

/** This much of a card at the lower edge must be seen, so that it can be read what it is. */
const TITLE_PX = 26;

interface Remembered {
  stripStage?: string;
}

export function create(surroundings: Surroundings): View {
  return new StripView(surroundings);
}

class StripView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly row = h("div", {
    class: "strip",
    role: "listbox",
    "aria-label": "Stages of the compile",
    "aria-orientation": "horizontal",
  });
  /** How many cards are below the edge; a click shows them. */
  private readonly more = button("", () => this.showMore(), { class: "more", hidden: true });
  private readonly scroll = h("div", { class: "strip-scroll" }, this.row);
  private readonly stages = h("div", { class: "strip-stages" }, this.scroll, this.more);
  private readonly side = h("div", {
    class: "details",
    role: "region",
    "aria-label": "The chosen stage",
  });
  private readonly body = h("div", { class: "body" });
  readonly element = h("section", { class: "view strip-view" }, this.toolbar, this.body);
  private readonly search = h("input", {
    class: "search",
    type: "search",
    placeholder: "Search passes and operations",
    "aria-label": "Search passes and operations",
  });
  private readonly found = h("span", { class: "dim", role: "status" });
  private subject: Subject | undefined;
  private data: Pipeline | undefined;
  private chosen: PipelineStage | undefined;
  private cards = new Map<string, HTMLElement>();
  private last: Place | undefined;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private readonly loader = new Loader<Pipeline>(this.body, "the pipeline", (result) => this.draw(result));

  constructor(private readonly surroundings: Surroundings) {
    this.search.addEventListener("input", () => this.mark());
    this.search.addEventListener("keydown", (event) => this.onSearchKey(event));
    this.row.addEventListener("keydown", (event) => this.onKey(event));
    this.scroll.addEventListener("scroll", () => this.countHidden());
    new ResizeObserver(() => this.arrange()).observe(this.scroll);
  }

  show(given: Subject): void {
    const { data } = this;
    const same = data?.run === (given.deep ?? given.run) && data.compile === (given.compile ?? data.compile);
    this.subject = given;
    if (same && data !== undefined && data.stages.length > 0) {
      this.choose(stageOf(data, given.stage), false);
    } else {
      this.refresh();
    }
  }

  refresh(): void {
    if (this.subject !== undefined) {
      const { run, deep, compile } = this.subject;
      void this.loader.load("irscope/pipeline", { run: deep ?? run, ...(compile === undefined ? {} : { compile }) });
    }
  }

  cursor(place: Place): void {
    this.last = place;
    const at = this.data === undefined ? undefined : positionOf(this.data, place);
    if (at?.stage !== undefined) {
      const stage = stageOf(this.data, at.stage);
      if (stage !== this.chosen) {
        this.choose(stage, false);
      }
    }
  }

  focus(): void {
    const card = this.chosen === undefined ? undefined : this.cards.get(this.chosen.stage);
    (card ?? this.search).focus();
  }

  private draw(result: Pipeline): void {
    this.data = result;
    this.cards = new Map();
    this.drawToolbar(result);
    if (result.stages.length === 0) {
      this.chosen = undefined;
      this.body.replaceChildren(notice("No stages to show.", result.reason, runButton()));
      return;
    }
    const row = rowOf(result.stages);
    for (const stage of result.stages) {
      const card = cardElement(stage, row);
      card.addEventListener("click", () => {
        this.choose(stage, true);
        card.focus();
      });
      this.cards.set(stage.stage, card);
    }
    const groups = (["shared", "forward", "backward"] as const).map((track) =>
      h(
        "div",
        { class: "track", role: "group", "aria-label": TRACK_NAMES[track] },
        ...result.stages.filter((stage) => stage.track === track).map((stage) => this.cards.get(stage.stage)),
      ),
    );
    this.row.replaceChildren(...groups.filter((group) => group.childElementCount > 0));
    this.scroll.replaceChildren(this.row, ...(result.end === null ? [] : [endElement(result.end)]));
    this.body.replaceChildren(this.stages, this.side);
    this.arrange();
    this.choose(firstChoice(result, this.subject?.stage ?? bridge.recall<Remembered>().stripStage), false);
    this.mark();
  }

  /** Puts the cards where they fit: as many beside each other as the view is wide, the others below. */
  private arrange(): void {
    const styles = getComputedStyle(this.row);
    const [least, gap] = [parseFloat(styles.getPropertyValue("--least")), parseFloat(styles.columnGap)];
    const stages = this.data?.stages ?? [];
    if (this.row.clientWidth === 0 || stages.length === 0) {
      return;
    }
    const columns = Math.max(...stages.map(({ column }) => column)) + 1;
    const perLine = Math.min(columns, cardsPerLine(this.row.clientWidth, least, gap));
    const cells = cellsOf(stages, perLine);
    for (const [id, { column, row, rows }] of cells) {
      const card = this.cards.get(id);
      card?.style.setProperty("grid-column", String(column));
      card?.style.setProperty("grid-row", `${row} / span ${rows}`);
    }
    this.row.style.setProperty("--columns", String(perLine));
    this.row.style.setProperty(
      "--rows",
      String(Math.max(...[...cells.values()].map(({ row, rows }) => row + rows - 1))),
    );
    this.countHidden();
  }

  /** The cards whose titles cannot be seen. */
  private below(): HTMLElement[] {
    const edge = this.scroll.getBoundingClientRect().bottom - TITLE_PX;
    return [...this.cards.values()].filter((card) => card.getBoundingClientRect().top > edge);
  }

  private countHidden(): void {
    const { length } = this.below();
    this.more.hidden = length === 0;
    setText(this.more, `${length} more`);
  }

  private showMore(): void {
    const [first] = this.below();
    first?.scrollIntoView({ block: "start", inline: "nearest" });
    first?.focus();
    this.countHidden(); // Not with the event of the scrolling, which comes later: nobody may press a button that is gone.
  }

  private drawToolbar({ compiles, compile, kernels, stages, rank }: Pipeline): void {
    const options = compiles.map((one) => ({ value: one.id, text: compileText(one) }));
    const chooser = select("Compile", options, compile ?? undefined, (id) => {
      if (this.subject !== undefined) {
        this.subject = { ...this.subject, compile: id };
        this.surroundings.choseCompile(id);
        this.refresh();
      }
    });
    const languages = kernels.map(kernelCount).join(", ");
    this.toolbar.replaceChildren(
      ...(rank === "" ? [] : [h("span", { class: "chip" }, rank)]),
      ...(compiles.length > 0 ? [chooser] : []),
      ...(stages.length > 0 ? [this.search, this.found] : []),
      h("span", { class: "spacer" }),
      ...(languages === ""
        ? []
        : [h("span", { class: "dim languages", title: "Kernels by language" }, `kernels: ${languages}`)]),
    );
  }

  private choose(stage: PipelineStage | undefined, open: boolean): void {
    if (stage === undefined || this.data === undefined) {
      return;
    }
    for (const [id, each] of this.cards) {
      each.setAttribute("aria-selected", String(id === stage.stage));
      each.tabIndex = id === stage.stage ? 0 : -1;
    }
    this.chosen = stage;
    bridge.remember<Remembered>({ stripStage: stage.stage });
    this.cards.get(stage.stage)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.drawDetails();
    if (open) {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => void this.openAt(stage), REST_MS);
    }
  }

  private drawDetails(): void {
    const { chosen, data } = this;
    if (chosen !== undefined && data !== undefined) {
      const open = (): void => void this.openAt(chosen, false);
      this.side.replaceChildren(...details(chosen, previousOf(data, chosen), data.run, this.search.value, { open }));
    }
  }

  /** Opens a stage's document at the line that the cursor's place became, or came from. */
  private async openAt(stage: PipelineStage, preserveFocus = true): Promise<void> {
    const entry = stage.entries[0];
    const { data, last } = this;
    if (entry === undefined || data === undefined) {
      return;
    }
    let place: Place = { uri: entry.uri, line: 0 };
    const from = last === undefined ? undefined : positionOf(data, last);
    if (from !== undefined) {
      try {
        const step = await bridge.request<Step>("irscope/step", { run: data.run, ...from, target: stage.stage });
        place = step.uri === null ? place : { uri: step.uri, line: step.line };
      } catch {
        // Nothing leads there: the document opens at its beginning.
      }
    }
    bridge.open(place, preserveFocus);
    announce(`${stage.title}, line ${place.line + 1}`);
  }

  private onKey(event: KeyboardEvent): void {
    const { chosen, data } = this;
    if (chosen === undefined || data === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      void this.openAt(chosen, false);
    } else if (event.key === "/") {
      this.search.focus();
    } else if (/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key)) {
      const next = neighbour(data, chosen, event.key);
      this.choose(next, true);
      this.cards.get(next?.stage ?? "")?.focus();
    } else {
      return;
    }
    event.preventDefault();
  }

  // --- search ---

  private onSearchKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.search.value = "";
      this.mark();
    } else if (event.key === "Enter" && this.data !== undefined) {
      const matches = matchesOf(this.data.stages, this.search.value);
      this.choose(nextMatch(this.data, this.chosen, matches, event.shiftKey ? -1 : 1), false);
    } else {
      return;
    }
    event.preventDefault();
  }

  private mark(): void {
    const hits = matchesOf(this.data?.stages ?? [], this.search.value);
    for (const [id, each] of this.cards) {
      const mine = hits.get(id);
      each.classList.toggle("faded", this.search.value.trim() !== "" && mine === undefined);
      const badge = each.querySelector(".card-hits");
      if (badge !== null) {
        badge.textContent = mine === undefined ? "" : String(mine.total);
      }
    }
    this.found.textContent = summaryOf(hits, this.search.value);
    this.drawDetails();
  }
}
