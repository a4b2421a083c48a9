/** The pipeline of a compile as a row of stages, forward above backward, with what each pass changed. */

import * as bridge from "../bridge";
import { announce, h, select } from "../dom";
import type { Subject } from "../messages";
import type { Pipeline, PipelineStage, Step, Track } from "../results";
import { Loader, notice, runButton, seconds, type Surroundings, type View } from "../view";
import type { Place } from "../../protocol";
import { bytes, plural } from "../../format";
import { details } from "./details";
import { matchesOf, summaryOf, type Matches } from "./search";

const KINDS: [RegExp, string][] = [
  [/bytecode/, "source"],
  [/-graph$/, "graph"],
  [/^ir-/, "ir"],
  [/output-code/, "code"],
];
/** Arrow keys may be held down: a document is opened when they rest. */
const REST_MS = 180;

interface Remembered {
  stripStage?: string;
}

export function createStrip(surroundings: Surroundings): View {
  const toolbar = h("div", { class: "toolbar" });
  const row = h("div", {
    class: "strip",
    attributes: { role: "listbox", "aria-label": "Stages of the compile", "aria-orientation": "horizontal" },
  });
  const side = h("div", { class: "details", attributes: { role: "region", "aria-label": "The chosen stage" } });
  const body = h("div", { class: "body" });
  const element = h("section", { class: "view strip-view" }, toolbar, body);
  const search = h("input", {
    class: "search",
    attributes: {
      type: "search",
      placeholder: "Search passes and operations",
      "aria-label": "Search passes and operations",
    },
  });
  const found = h("span", { class: "dim", attributes: { role: "status" } });

  let subject: Subject | undefined;
  let data: Pipeline | undefined;
  let chosen: PipelineStage | undefined;
  let cards = new Map<string, HTMLElement>();
  let last: Place | undefined;
  let resting: ReturnType<typeof setTimeout> | undefined;
  const loader = new Loader<Pipeline>(body, "the pipeline", draw);

  search.addEventListener("input", () => mark());
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      mark();
    } else if (event.key === "Enter") {
      nextMatch(event.shiftKey ? -1 : 1);
    } else {
      return;
    }
    event.preventDefault();
  });
  row.addEventListener("keydown", onKey);

  function load(): void {
    if (subject !== undefined) {
      const run = subject.deep ?? subject.run;
      void loader.load("irscope/pipeline", {
        run,
        ...(subject.compile === undefined ? {} : { compile: subject.compile }),
      });
    }
  }

  function draw(result: Pipeline): void {
    data = result;
    cards = new Map();
    drawToolbar(result);
    if (result.stages.length === 0) {
      chosen = undefined;
      body.replaceChildren(notice("No stages to show.", result.reason, runButton()));
      return;
    }
    const columns = Math.max(...result.stages.map((stage) => stage.column)) + 1;
    const both = result.stages.some((stage) => stage.track === "backward");
    const most = Math.max(...result.stages.map((stage) => stage.seconds ?? 0));
    row.style.setProperty("--columns", String(columns));
    row.classList.toggle("both", both);
    const groups = (["shared", "forward", "backward"] as const).map((track) =>
      h(
        "div",
        { class: "track", attributes: { role: "group", "aria-label": TRACK_NAMES[track] } },
        ...result.stages.filter((stage) => stage.track === track).map((stage) => card(stage, both, most)),
      ),
    );
    row.replaceChildren(...groups.filter((group) => group.childElementCount > 0));
    body.replaceChildren(h("div", { class: "strip-scroll" }, row), side);
    const wanted = subject?.stage ?? bridge.recall<Remembered>().stripStage;
    choose(stageOf(wanted) ?? result.stages.find((stage) => stage.isGraph) ?? result.stages[0], false);
    mark();
  }

  function drawToolbar({ compiles, compile, kernels, stages }: Pipeline): void {
    const options = compiles.map((one) => ({
      value: one.id,
      text: `${one.id} ${one.function} · ${plural(one.graphOps, "op")} · ${seconds(one.seconds)}`,
    }));
    const chooser = select("Compile", options, compile ?? undefined, (id) => {
      if (subject !== undefined) {
        subject = { ...subject, compile: id };
        surroundings.choseCompile(id);
        load();
      }
    });
    const languages = kernels.map(({ language, count }) => `${count} ${language}`).join(", ");
    toolbar.replaceChildren(
      ...(compiles.length > 0 ? [chooser] : []),
      ...(stages.length > 0 ? [search, found] : []),
      h("span", { class: "spacer" }),
      ...(languages === "" ? [] : [h("span", { class: "dim", title: "Kernels by language" }, `kernels: ${languages}`)]),
    );
  }

  function card(stage: PipelineStage, both: boolean, most: number): HTMLElement {
    const kind = KINDS.find(([pattern]) => pattern.test(stage.name))?.[1] ?? "kernel";
    const facts = [
      stage.count === null
        ? bytes(stage.bytes)
        : `${stage.count.toLocaleString()} ${stage.unit.replace(/s$/, stage.count === 1 ? "" : "s")}`,
      ...(stage.seconds === null ? [] : [seconds(stage.seconds)]),
    ];
    const changed = stage.passes.length;
    const share = most > 0 ? (stage.seconds ?? 0) / most : 0;
    const made = h(
      "div",
      {
        class: `card of-${kind}${stage.column === 0 ? " first" : ""}`,
        tabIndex: -1,
        title: `${stage.title}\n${facts.join(", ")}, ${bytes(stage.bytes)}`,
        attributes: {
          role: "option",
          "aria-selected": "false",
          "data-stage": stage.stage,
          "data-track": stage.track,
        },
        style: {
          "grid-column": String(stage.column + 1),
          "grid-row": both ? ROWS[stage.track] : "1",
          "--share": share.toFixed(3),
        },
      },
      h("span", { class: "card-title" }, stage.short),
      h("span", { class: "only-read" }, ", "),
      h("span", { class: "card-facts" }, facts.join(" · ")),
      h("span", { class: "only-read" }, ", "),
      h(
        "span",
        { class: "card-passes" },
        both && stage.track !== "shared" ? `${stage.track} ` : "",
        changed > 0 && plural(changed, "pass", "passes"),
        changed > 0 && h("span", { class: "only-read" }, " changed it"),
      ),
      h("span", { class: "card-hits" }),
    );
    made.addEventListener("click", () => {
      choose(stage, true);
      made.focus();
    });
    cards.set(stage.stage, made);
    return made;
  }

  function choose(stage: PipelineStage | undefined, open: boolean): void {
    if (stage === undefined || data === undefined) {
      return;
    }
    for (const [id, each] of cards) {
      each.setAttribute("aria-selected", String(id === stage.stage));
      each.tabIndex = id === stage.stage ? 0 : -1;
    }
    chosen = stage;
    bridge.remember<Remembered>({ stripStage: stage.stage });
    cards.get(stage.stage)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    drawDetails();
    if (open) {
      clearTimeout(resting);
      resting = setTimeout(() => void openAt(stage), REST_MS);
    }
  }

  function drawDetails(): void {
    if (chosen !== undefined && data !== undefined) {
      side.replaceChildren(...details(chosen, previousOf(chosen), data.run, search.value, { open: openStage }));
    }
  }

  function openStage(): void {
    if (chosen !== undefined) {
      void openAt(chosen, false);
    }
  }

  /** Opens a stage's document at the line that the cursor's place became, or came from. */
  async function openAt(stage: PipelineStage, preserveFocus = true): Promise<void> {
    const entry = stage.entries[0];
    if (entry === undefined || data === undefined) {
      return;
    }
    const run = data.run;
    let place: Place = { uri: entry.uri, line: 0 };
    const from = last === undefined ? undefined : positionOf(last, run);
    if (from !== undefined) {
      try {
        const step = await bridge.request<Step>("irscope/step", { run, ...from, target: stage.stage });
        place = step.uri === null ? place : { uri: step.uri, line: step.line };
      } catch {
        // Nothing leads there: the document opens at its beginning.
      }
    }
    bridge.open(place, preserveFocus);
    announce(`${stage.title}, line ${place.line + 1}`);
  }

  function stageOf(id: string | undefined): PipelineStage | undefined {
    return data?.stages.find(
      (stage) =>
        stage.stage === id ||
        stage.entries.some((entry) => entry.stage === id) ||
        stage.beside.some((entry) => entry.stage === id) ||
        stage.passes.some((pass) => pass.stage === id),
    );
  }

  /** The stage that one was made from. */
  function previousOf(stage: PipelineStage): PipelineStage | undefined {
    return path(stage.track === "shared" ? "forward" : stage.track)
      .filter((each) => each.column < stage.column)
      .at(-1);
  }

  /** The way from the source down one side. */
  function path(track: Track): PipelineStage[] {
    return (data?.stages ?? [])
      .filter((stage) => stage.track === "shared" || stage.track === track)
      .sort((a, b) => a.column - b.column);
  }

  function onKey(event: KeyboardEvent): void {
    if (chosen === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const way = path(chosen.track === "shared" ? "forward" : chosen.track);
    const at = way.indexOf(chosen);
    let next: PipelineStage | undefined;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      next = way[at + (event.key === "ArrowRight" ? 1 : -1)];
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const track = event.key === "ArrowDown" ? "backward" : "forward";
      const column = chosen.column;
      next = data?.stages.find((stage) => stage.track === track && stage.column >= column);
    } else if (event.key === "Home" || event.key === "End") {
      next = event.key === "Home" ? way[0] : way.at(-1);
    } else if (event.key === "Enter" || event.key === " ") {
      openStage();
    } else if (event.key === "/") {
      search.focus();
    } else {
      return;
    }
    event.preventDefault();
    if (next !== undefined) {
      choose(next, true);
      cards.get(next.stage)?.focus();
    }
  }

  // --- search ---

  function matches(): Map<string, Matches> {
    return matchesOf(data?.stages ?? [], search.value);
  }

  function mark(): void {
    const hits = matches();
    for (const [id, each] of cards) {
      const mine = hits.get(id);
      each.classList.toggle("faded", search.value.trim() !== "" && mine === undefined);
      const badge = each.querySelector(".card-hits");
      if (badge !== null) {
        badge.textContent = mine === undefined ? "" : String(mine.total);
      }
    }
    found.textContent = summaryOf(hits, search.value);
    drawDetails();
  }

  function nextMatch(by: 1 | -1): void {
    const stages = (data?.stages ?? []).filter((stage) => matches().has(stage.stage));
    if (stages.length > 0) {
      const at = chosen === undefined ? -1 : stages.indexOf(chosen);
      choose(stages[(at + by + stages.length) % stages.length], false);
    }
  }

  return {
    element,
    show(given) {
      const same = data?.run === (given.deep ?? given.run) && data.compile === (given.compile ?? data.compile);
      subject = given;
      if (same && data !== undefined && data.stages.length > 0) {
        choose(stageOf(given.stage), false);
      } else {
        load();
      }
    },
    refresh: load,
    cursor(place) {
      last = place;
      const at = data === undefined ? undefined : positionOf(place, data.run);
      if (at?.stage !== undefined) {
        const stage = stageOf(at.stage);
        if (stage !== chosen) {
          choose(stage, false);
        }
      }
    },
    focus() {
      const card = chosen === undefined ? undefined : cards.get(chosen.stage);
      (card ?? search).focus();
    },
  };

  /** A place of an editor as `irscope/step` takes it: in a stage of this run, or in a file. */
  function positionOf({ uri, line }: Place, run: string): { stage?: string; uri?: string; line: number } | undefined {
    if (uri.startsWith("file:")) {
      return { uri, line };
    }
    if (data === undefined || !decodeURIComponent(uri).startsWith(`irscope:/${run}/`)) {
      return undefined;
    }
    const all = data.stages.flatMap((stage) => [...stage.entries, ...stage.passes, ...stage.beside]);
    const entry = all.find((each) => decodeURIComponent(each.uri) === decodeURIComponent(uri));
    return entry === undefined ? undefined : { stage: entry.stage, line };
  }
}

const TRACK_NAMES: Record<Track, string> = { shared: "Forward and backward", forward: "Forward", backward: "Backward" };
const ROWS: Record<Track, string> = { shared: "1 / span 2", forward: "1", backward: "2" };
