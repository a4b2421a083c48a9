/** The graph panel: gets a graph, has it laid out, draws it, and tells the extension which node was chosen. */

import type { Graph } from "../protocol";
import { Camera, type View } from "./camera";
import { LayoutCancelled, startLayout } from "./layout";
import type { FromPanel, StageRef, ToPanel } from "./messages";
import { neighbour, type Direction } from "./navigation";
import { drawPicture, type DrawnNode, type Picture } from "./picture";
import { Search } from "./search";

interface State {
  stage?: StageRef;
  view?: View;
  selected?: string;
  search?: string;
}

interface VsCode {
  postMessage(message: FromPanel): void;
  getState(): State | undefined;
  setState(state: State): void;
}

declare function acquireVsCodeApi(): VsCode;

const vscode = acquireVsCodeApi();
let state: State = vscode.getState() ?? {};

const canvas = element("canvas");
const searchBox = element<HTMLInputElement>("search");

let drawing: { picture: Picture; camera: Camera; search: Search } | undefined;
let selected: DrawnNode | undefined;

window.addEventListener("message", ({ data }: MessageEvent<ToPanel>) => {
  switch (data.type) {
    case "stage":
      remember({ stage: data.stage });
      notice("Loading the graph…");
      break;
    case "graph":
      void draw(data.graph);
      break;
    case "failed":
      notice("The graph could not be loaded.", data.message, {
        text: "Try Again",
        run: () => {
          notice("Loading the graph…");
          vscode.postMessage({ type: "retry" });
        },
      });
  }
});
listenToToolbar();
listenToCanvas();
vscode.postMessage({ type: "ready" });

async function draw(what: Graph): Promise<void> {
  const started = performance.now();
  element("summary").textContent =
    `${what.nodes.length.toLocaleString()} ${what.nodes.length === 1 ? "node" : "nodes"}`;
  if (what.nodes.length === 0) {
    notice(
      "This graph has no nodes.",
      "The compile kept nothing to draw at this stage. Another stage of it may have more.",
    );
    return;
  }
  const layout = startLayout({ dot: what.dot, nodes: what.nodes.length });
  const clock = setInterval(() => tell(), 500);
  const tell = (): void => {
    const passed = Math.round((performance.now() - started) / 1000);
    const size = what.nodes.length > 1500 ? "This is a large graph; its layout can take minutes." : "";
    notice(`Laying out ${what.nodes.length.toLocaleString()} nodes… ${passed > 0 ? `${passed} s` : ""}`, size, {
      text: "Cancel",
      run: layout.cancel,
    });
  };
  tell();
  try {
    const picture = drawPicture(await layout.svg, what.nodes, canvas);
    picture.svg.setAttribute("aria-label", what.title);
    const camera = new Camera(canvas, picture.svg, picture.box, (view) => remember({ view }));
    drawing = { picture, camera, search: new Search(picture.nodes) };
    hideNotice();
    restoreView(camera, picture);
    vscode.postMessage({ type: "drawn", nodes: picture.nodes.size, milliseconds: performance.now() - started });
  } catch (error) {
    const again = { text: "Lay Out Again", run: () => void draw(what) };
    if (error instanceof LayoutCancelled) {
      notice("The layout was cancelled.", "", again);
    } else {
      notice("Graphviz could not lay out this graph.", error instanceof Error ? error.message : String(error), again);
    }
  } finally {
    clearInterval(clock);
  }
}

function restoreView(camera: Camera, picture: Picture): void {
  const { view, selected: id, search: text } = state;
  const first = picture.nodes.values().next().value;
  if (view === undefined) {
    camera.start(first);
  } else {
    camera.set(view);
  }
  if (text !== undefined && text !== "") {
    searchBox.value = text;
    search(text);
  }
  const node = id === undefined ? undefined : picture.nodes.get(id);
  if (node !== undefined) {
    select(node);
  }
}

function select(node: DrawnNode): void {
  for (const each of [selected?.element, ...(selected?.edges ?? [])]) {
    each?.classList.remove("selected");
  }
  selected = node;
  for (const each of [node.element, ...node.edges]) {
    each.classList.add("selected");
  }
  drawing?.camera.reveal(node);
  remember({ selected: node.node.id });
  element("details").hidden = false;
  element("details-name").textContent = node.node.name;
  element("details-op").textContent = node.node.op;
  element("details-detail").textContent = node.node.detail;
  element<HTMLButtonElement>("go-source").disabled = node.node.origin === null;
}

function openSource(node: DrawnNode): void {
  vscode.postMessage({ type: "openSource", node: node.node.id });
}

function openStage(node: DrawnNode): void {
  vscode.postMessage({ type: "openStage", node: node.node.id });
}

function search(text: string): void {
  drawing?.search.start(text);
  element("matches").textContent = drawing?.search.status ?? "";
  remember({ search: text });
}

function stepSearch(by: 1 | -1): void {
  search(searchBox.value);
  const match = drawing?.search.step(by);
  element("matches").textContent = drawing?.search.status ?? "";
  if (match !== undefined) {
    select(match);
  }
}

function listenToToolbar(): void {
  searchBox.addEventListener("input", () => search(searchBox.value));
  searchBox.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      stepSearch(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      searchBox.value = "";
      search("");
      canvas.focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  element("next").addEventListener("click", () => stepSearch(1));
  element("previous").addEventListener("click", () => stepSearch(-1));
  element("zoom-in").addEventListener("click", () => drawing?.camera.zoom(1.3));
  element("zoom-out").addEventListener("click", () => drawing?.camera.zoom(1 / 1.3));
  element("fit").addEventListener("click", () => drawing?.camera.fit());
  element("go-source").addEventListener("click", () => selected && openSource(selected));
  element("go-stage").addEventListener("click", () => selected && openStage(selected));
  window.addEventListener("keydown", (event) => {
    const inSearch = event.target === searchBox;
    if ((event.key === "/" && !inSearch) || (event.key === "f" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      searchBox.focus();
      searchBox.select();
    }
  });
}

const ARROWS: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const PAN_STEP_PIXELS = 80;

function listenToCanvas(): void {
  canvas.addEventListener("click", (event) => {
    const group = event.target instanceof Element ? event.target.closest("g.node") : null;
    const node = group === null ? undefined : drawing?.picture.nodes.get(group.id);
    if (node === undefined) {
      return;
    }
    select(node);
    node.element.focus({ preventScroll: true });
    if (event.altKey || event.ctrlKey || event.metaKey) {
      openStage(node);
    } else {
      openSource(node);
    }
  });
  canvas.addEventListener("keydown", (event) => {
    if (drawing === undefined || !handleKey(event, drawing)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
}

/** True when the key meant something here. */
function handleKey(event: KeyboardEvent, { camera, picture }: NonNullable<typeof drawing>): boolean {
  const direction = ARROWS[event.key];
  if (direction !== undefined && event.shiftKey) {
    const [x, y] = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[direction] as [number, number];
    camera.pan(x * PAN_STEP_PIXELS, y * PAN_STEP_PIXELS);
  } else if (direction !== undefined) {
    const next =
      selected === undefined ? picture.nodes.values().next().value : neighbour(selected, direction, picture.nodes);
    if (next !== undefined) {
      select(next);
      next.element.focus({ preventScroll: true });
    }
  } else if (event.key === "Enter" && selected !== undefined) {
    if (event.altKey) {
      openStage(selected);
    } else {
      openSource(selected);
    }
  } else if (event.key === "+" || event.key === "=") {
    camera.zoom(1.3);
  } else if (event.key === "-") {
    camera.zoom(1 / 1.3);
  } else if (event.key === "0") {
    camera.fit();
  } else {
    return false;
  }
  return true;
}

function notice(text: string, detail = "", action?: { text: string; run: () => void }): void {
  element("notice").hidden = false;
  setText("notice-text", text);
  setText("notice-detail", detail);
  const button = element<HTMLButtonElement>("notice-action");
  button.hidden = action === undefined;
  setText("notice-action", action?.text ?? "");
  button.onclick = action?.run ?? null;
}

function hideNotice(): void {
  element("notice").hidden = true;
}

/** Leaves an unchanged text alone, so that a screen reader does not say it again. */
function setText(id: string, text: string): void {
  const target = element(id);
  if (target.textContent !== text) {
    target.textContent = text;
  }
}

function remember(change: State): void {
  state = { ...state, ...change };
  vscode.setState(state);
}

function element<Kind extends HTMLElement = HTMLElement>(id: string): Kind {
  return document.getElementById(id) as Kind;
}
