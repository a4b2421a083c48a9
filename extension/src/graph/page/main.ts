/** The graph panel: asks the server for a graph, folds it into clusters, has what is open laid out, and draws it. */

import { Age } from "../../panels/age";
import { graphRequest } from "../../panels/ahead";
import { on, post, ready, recall, remember, request } from "../../panels/bridge";
import type { Lines, Subject } from "../../panels/messages";
import { visible } from "../../panels/visible";
import type { Graph, GraphKernels, GraphVersion } from "../../protocol";
import type { ColourMode } from "../draw/colours";
import { saveDot, saveSvg, type Shown } from "./exporting";
import { groupings, type Grouping } from "../model/grouping";
import { handleKey } from "./keys";
import { Layouter } from "../layout/layout";
import { Model } from "../model/model";
import { hideNotice, notice } from "./notice";
import { h, setText } from "../../panels/dom";
import { buildPage } from "./page";
import { GraphPanel } from "./panel";
import { Results } from "./results";
import { boxAt, HEADER, type Box } from "../layout/scene";
import type { State } from "./state";
import { onThemeChange } from "../draw/theme";

/** What lies over the picture: the mouse means it, and not the boxes beneath. */
const ON_TOP = "#zoom";

const page = buildPage();
const layouter = new Layouter();
const age = new Age(request);
const results = new Results(page, (index) => goToMatch(panel?.search.goTo(index)));
let panel: GraphPanel | undefined;
let subject: Subject | undefined;
/** Where to go as soon as there is a picture. */
let landing: Lines | undefined;
let isDrawn = false;
/** Counts what was asked for, so that an answer that is late, or was given up, is passed over. */
let asked = 0;

layouter.warmUp();
page.where.prepend(age.element);
listenToPage();
on("subject", (message) => {
  subject = message.subject;
  remember<State>({ subject });
  void load();
  void age.show(subject.run);
});
on("changed", ({ running }) => {
  if (!running) {
    void age.show(subject?.run);
  }
});
on("land", ({ at }) => {
  landing = at;
  land();
});
on("cursor", ({ place }) => panel?.link(place.uri, place.line));
ready();

// --- the graph -------------------------------------------------------------------------------------------------------

async function load(): Promise<void> {
  if (subject === undefined) {
    return;
  }
  asked += 1;
  const question = asked;
  const begun = performance.now();
  const { change } = recall<State>();
  const { run } = subject;
  const stage = change?.stage ?? subject.stage ?? "";
  const again = { text: "Try Again", run: () => void load() };
  notice(page, "Loading the graph…", "", {
    text: "Cancel",
    run: () => {
      asked += 1;
      notice(page, "Loading was cancelled.", "", again);
    },
  });
  try {
    const { method, params } = graphRequest(subject, change);
    const answer = await request<Graph | { text: string }>(method, params);
    const graph = "text" in answer ? (JSON.parse(answer.text) as Graph) : answer;
    if (question === asked) {
      await draw(graph, begun);
    }
  } catch (error) {
    if (question === asked) {
      notice(page, "The graph could not be loaded.", error instanceof Error ? error.message : String(error), again);
    }
    return;
  }
  try {
    const kernels = await request<GraphKernels>("irscope/graphKernels", { run, stage });
    if (question === asked && panel !== undefined && panel.model.count > 0) {
      panel.model.setKernels(kernels);
      await panel.kernelsCame();
    }
  } catch {
    // A run of the fast lane, or from elsewhere, has no kernels; the picture is complete without.
  }
}

async function draw(graph: Graph, begun: number): Promise<void> {
  post({ type: "title", title: graph.title });
  offerChanges(graph.versions);
  const model = new Model(graph);
  if (model.count === 0) {
    panel = undefined;
    notice(page, "This graph has no nodes.", "The stage was captured, but nothing was left in it.");
    post({ type: "drawn", what: "0 nodes", milliseconds: Math.round(performance.now() - begun) });
    return;
  }
  hideNotice(page);
  const former = panel;
  isDrawn = false;
  panel = new GraphPanel(page, model, layouter, former?.view);
  offerChoices();
  await panel.begin();
  panel.view.paint();
  isDrawn = true;
  land();
  page.canvas.dataset["nodes"] = String(model.count);
  post({ type: "drawn", what: `${model.count} nodes`, milliseconds: Math.round(performance.now() - begun) });
  showMatches();
}

function land(): void {
  if (landing !== undefined && isDrawn && panel !== undefined) {
    const { uri, lines } = landing;
    landing = undefined;
    void panel.land(uri, lines);
  }
}

/** The list of what can be shown: the graph as it is, and what each pass of this compile changed. */
function offerChanges(versions: readonly GraphVersion[]): void {
  const { change } = recall<State>();
  const comparable = versions.filter(({ before }) => before !== "");
  const titleOf = (stage: string): string => versions.find((version) => version.stage === stage)?.title ?? stage;
  const passes = comparable.filter((version) => version.pass !== "");
  const stages = comparable.filter((version) => version.pass === "");
  const option = ({ stage, before, title, pass, backward }: GraphVersion): HTMLElement => {
    const name = pass === "between_passes" ? "between passes" : pass === "start" ? "before its passes" : pass;
    const text = pass === "" ? `${titleOf(before)} → ${title}` : `${name}${backward ? " (backward)" : ""}`;
    return h("option", { value: JSON.stringify({ stage, before }), title }, text);
  };
  page.compare.replaceChildren(h("option", { value: "" }, "this graph"));
  if (passes.length > 0) {
    page.compare.append(h("optgroup", { label: "What a pass changed" }, ...passes.map(option)));
  }
  if (stages.length > 0) {
    page.compare.append(h("optgroup", { label: "What changed between stages" }, ...stages.map(option)));
  }
  page.compare.value = change === undefined ? "" : JSON.stringify({ stage: change.stage, before: change.before });
  page.compareLabel.hidden = comparable.length === 0;
}

function offerChoices(): void {
  const state = recall<State>();
  for (const option of page.grouping.options) {
    option.hidden = panel !== undefined && !groupings(panel.model).includes(option.value as Grouping);
  }
  page.grouping.value = panel?.grouping ?? "module";
  const isCompared = panel?.model.compared === true;
  for (const option of page.colour.options) {
    option.hidden = option.value === "change" && !isCompared;
  }
  page.colour.value = state.colour ?? (isCompared ? "change" : "operation");
  offerTargets();
  page.search.value = state.search ?? "";
  page.only.setAttribute("aria-pressed", String(state.only === true));
}

/**
 * The devices that times can be estimated for. The one that ran is chosen at first, if it is one of them. A CPU that ran
 * is in the list also before a profile has measured it, and says what it takes.
 */
function offerTargets(): void {
  const { targets = [], devices = [], ranOn = "", gpu = "" } = panel?.model.graph ?? {};
  const unmeasured = "this CPU (used by the run): Profile This File measures it";
  const isMeasured = !devices.includes("cpu") || gpu !== "" || ranOn !== "";
  page.target.replaceChildren(
    h("option", { value: "" }, "choose a device"),
    ...targets.map(({ name }) => h("option", { value: name }, name === ranOn ? `${name} (used by the run)` : name)),
    ...(isMeasured ? [] : [h("option", { disabled: true }, unmeasured)]),
  );
  page.target.value = panel?.model.target?.name ?? "";
  page.targetLabel.hidden = page.colour.value !== "time";
}

// --- search ----------------------------------------------------------------------------------------------------------

function showMatches(): void {
  const search = panel?.search;
  setText(page.matches, search?.status ?? "");
  const none = (search?.matches.length ?? 0) === 0;
  page.previous.disabled = none;
  page.next.disabled = none;
  page.only.disabled = none && page.only.getAttribute("aria-pressed") !== "true";
}

function goToMatch(node: number | undefined): void {
  if (node !== undefined && panel !== undefined) {
    const shown = panel;
    void shown.find(node).then(() => {
      shown.showSearch();
      showMatches();
    });
  }
}

function listenToSearch(): void {
  page.search.addEventListener("input", () => {
    remember<State>({ search: page.search.value });
    if (panel?.search.start(page.search.value) === true) {
      const isCut = page.only.getAttribute("aria-pressed") === "true";
      if (isCut) {
        page.only.setAttribute("aria-pressed", String(panel.search.isOn));
        void panel.onlyMatches(panel.search.isOn);
      }
      panel.showSearch();
      showMatches();
      results.show(panel);
    }
  });
  page.search.addEventListener("keydown", (event) => {
    const isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
    if (panel !== undefined && (event.key === "Enter" || isArrow)) {
      event.preventDefault();
      goToMatch(panel.search.step(event.key === "ArrowUp" || event.shiftKey ? -1 : 1));
      if (isArrow) {
        results.show(panel);
      } else {
        results.hide();
      }
    } else if (event.key === "Escape" && results.isShown) {
      event.preventDefault();
      results.hide();
    }
  });
  page.previous.addEventListener("click", () => goToMatch(panel?.search.step(-1)));
  page.next.addEventListener("click", () => goToMatch(panel?.search.step(1)));
  page.only.addEventListener("click", () => {
    const only = page.only.getAttribute("aria-pressed") !== "true";
    page.only.setAttribute("aria-pressed", String(only));
    void panel?.onlyMatches(only).then(showMatches);
  });
}

// --- the page --------------------------------------------------------------------------------------------------------

function listenToPage(): void {
  listenToSearch();
  const { buttons } = page;
  page.grouping.addEventListener("change", () => void panel?.setGrouping(page.grouping.value as Grouping));
  page.colour.addEventListener("change", () => {
    panel?.setColour(page.colour.value as ColourMode);
    offerTargets();
  });
  page.target.addEventListener("change", () => panel?.setTarget(page.target.value));
  page.compare.addEventListener("change", () => {
    const change = page.compare.value === "" ? undefined : (JSON.parse(page.compare.value) as State["change"]);
    remember<State>({ change, open: [], view: undefined, selected: "", colour: undefined });
    void load();
  });
  buttons.expand.addEventListener("click", () => void panel?.expandAll());
  buttons.collapse.addEventListener("click", () => void panel?.collapseAll());
  buttons.zoomIn.addEventListener("click", () => panel?.view.camera.zoom(1.3));
  buttons.zoomOut.addEventListener("click", () => panel?.view.camera.zoom(1 / 1.3));
  buttons.fit.addEventListener("click", () => panel?.view.camera.fit());
  buttons.svg.addEventListener("click", () => save(saveSvg));
  buttons.dotShown.addEventListener("click", () => save((shown) => saveDot(shown, "shown")));
  buttons.dotWhole.addEventListener("click", () => save((shown) => saveDot(shown, "whole")));
  onThemeChange(() => panel?.themeChanged());
  page.tree.addEventListener("keydown", (event) => {
    if (panel !== undefined && handleKey(panel, event)) {
      event.preventDefault();
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if ((event.key === "/" && !isTyping) || (event.key === "f" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      page.search.focus();
      page.search.select();
    }
  });
  listenToMouse();
}

/** Saves the graph that is there now, if need be once it is laid out. */
function save(how: (shown: Shown) => void): void {
  const asked = panel;
  asked?.view.whenShown(() => {
    if (panel === asked) {
      how(asked.shown);
    }
  });
}

function boxUnder(event: MouseEvent): Box | undefined {
  const view = panel?.view;
  if (view?.scene === undefined) {
    return undefined;
  }
  const rect = page.canvas.getBoundingClientRect();
  const { x, y, scale } = view.camera.view;
  return boxAt(view.scene, x + (event.clientX - rect.left) / scale, y + (event.clientY - rect.top) / scale);
}

function isOnChevron(event: MouseEvent, box: Box): boolean {
  const rect = page.canvas.getBoundingClientRect();
  const { x, y, scale } = panel?.view.camera.view ?? { x: 0, y: 0, scale: 1 };
  const [left, top] = [x + (event.clientX - rect.left) / scale - box.x, y + (event.clientY - rect.top) / scale - box.y];
  return left <= 24 && top <= HEADER;
}

function listenToMouse(): void {
  page.canvas.addEventListener("click", (event) => {
    const target = event.target as HTMLElement;
    if (panel === undefined || page.canvas.classList.contains("dragging") || target.closest(ON_TOP) !== null) {
      return;
    }
    const box = boxUnder(event);
    page.tree.focus({ preventScroll: true });
    if (box?.cluster !== undefined && isOnChevron(event, box)) {
      void panel.toggle(box.item);
      return;
    }
    panel.select(box?.item, { reveals: false });
    if (box !== undefined && box.cluster === undefined) {
      panel.ways.goToSource(box.item);
    }
  });
  page.canvas.addEventListener("dblclick", (event) => {
    const box = (event.target as HTMLElement).closest(ON_TOP) === null ? boxUnder(event) : undefined;
    if (box?.cluster !== undefined && !isOnChevron(event, box)) {
      void panel?.toggle(box.item);
    }
  });
  let hovered: Box | undefined;
  page.canvas.addEventListener("pointermove", (event) => {
    const isFree = event.buttons === 0 && (event.target as HTMLElement).closest(ON_TOP) === null;
    const box = isFree ? boxUnder(event) : undefined;
    if (box !== hovered) {
      hovered = box;
      page.canvas.classList.toggle("over", box !== undefined && (box.cluster === undefined || !box.isOpen));
      page.canvas.title = box === undefined || panel === undefined ? "" : visible(tip(panel.model, box));
    }
  });
}

function tip(model: Model, box: Box): string {
  if (box.cluster !== undefined) {
    return box.isOpen ? "" : `${box.cluster.name}\n${box.cluster.type}\nDouble-click to open`;
  }
  return [model.name(box.item), model.op(box.item), model.detail(box.item)].filter((part) => part !== "").join("\n");
}
