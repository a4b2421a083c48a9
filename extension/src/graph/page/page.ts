/** The elements of the panel. They are made here and not in the host's page, which has nothing in it. */

import { h } from "../../panels/dom";

export interface Page {
  canvas: HTMLElement;
  picture: HTMLCanvasElement;
  minimap: HTMLCanvasElement;
  tree: HTMLElement;
  search: HTMLInputElement;
  matches: HTMLElement;
  previous: HTMLButtonElement;
  next: HTMLButtonElement;
  only: HTMLButtonElement;
  results: HTMLElement;
  grouping: HTMLSelectElement;
  colour: HTMLSelectElement;
  compare: HTMLSelectElement;
  compareLabel: HTMLElement;
  targetLabel: HTMLElement;
  target: HTMLSelectElement;
  summary: HTMLElement;
  path: HTMLElement;
  /** Where it is said that the run is an older one. */
  where: HTMLElement;
  legend: HTMLElement;
  announcement: HTMLElement;
  buttons: Record<
    "expand" | "collapse" | "zoomOut" | "zoomIn" | "fit" | "svg" | "dotShown" | "dotWhole",
    HTMLButtonElement
  >;
  notice: { root: HTMLElement; text: HTMLElement; detail: HTMLElement; action: HTMLButtonElement };
  details: {
    root: HTMLElement;
    name: HTMLElement;
    op: HTMLElement;
    detail: HTMLElement;
    facts: HTMLElement;
    links: HTMLElement;
    actions: HTMLElement;
  };
}

// A sign has to be put into words; a text must be a part of the button's name.
function button(id: string, text: string, title: string): HTMLButtonElement {
  return h("button", { type: "button", id, title, ...(/\w/.test(text) ? {} : { "aria-label": title }) }, text);
}

// In a narrow panel the icon replaces the text, which stays the button's name.
function brief(id: string, text: string, sign: string, title: string): HTMLButtonElement {
  return h(
    "button",
    { type: "button", id, title },
    h("span", { class: "long" }, text),
    h("span", { class: "short", "aria-hidden": "true" }, sign),
  );
}

function choice(id: string, label: string, options: [value: string, text: string][]): [HTMLElement, HTMLSelectElement] {
  const select = h("select", { id }, ...options.map(([value, text]) => h("option", { value }, text)));
  return [h("label", { class: "choice", for: id }, `${label} `, select), select];
}

function makeSearch() {
  const search = h("input", {
    type: "search",
    id: "search",
    placeholder: "Search: op, name, shape, module…",
    "aria-label": "Search nodes; Enter for the next match, Shift+Enter for the one before, arrow down for the list",
    title:
      "Words that must all fit; op:, name:, dtype:, shape:, device:, module:, kernel: or change: before a word looks at that alone. op: also finds what an operation was decomposed into: op:softmax. Exact names come first, then beginnings, then the rest",
    "aria-controls": "results",
    spellcheck: "false",
  });
  const matches = h("span", { id: "matches", role: "status" });
  const previous = button("previous", "↑", "Previous match (Shift+Enter)");
  const next = button("next", "↓", "Next match (Enter)");
  const only = brief("only", "Only Matches", "⊙", "Show only the matches");
  only.setAttribute("aria-pressed", "false");
  return { search, matches, previous, next, only };
}

function makeChoices() {
  const [groupingLabel, grouping] = choice("grouping", "Group by", [
    ["module", "module"],
    ["fusion", "fused node"],
    ["kernel", "kernel"],
    ["order", "order"],
  ]);
  const [colourLabel, colour] = choice("colour", "Colour by", [
    ["operation", "operation"],
    ["dtype", "dtype"],
    ["device", "device"],
    ["bytes", "bytes of result"],
    ["time", "estimated time"],
    ["kernel", "kernel"],
    ["change", "change"],
    ["none", "nothing"],
  ]);
  const [compareLabel, compare] = choice("compare", "Show", []);
  const [targetLabel, target] = choice("target", "Estimate for", []);
  targetLabel.hidden = true;
  return { groupingLabel, grouping, colourLabel, colour, compareLabel, compare, targetLabel, target };
}

/** The buttons, and the menu of what can be saved. */
function makeButtons() {
  const buttons = {
    expand: brief("expand", "Expand All", "⊞", "Open clusters, as many as can be drawn at once"),
    collapse: brief("collapse", "Collapse All", "⊟", "Close all clusters"),
    zoomOut: button("zoom-out", "−", "Zoom out (Page Down)"),
    zoomIn: button("zoom-in", "+", "Zoom in (Page Up)"),
    fit: button("fit", "Fit", "Show the whole graph (0)"),
    svg: button("export-svg", "Picture as SVG…", "Save what is open as an SVG file"),
    dotShown: button("export-dot-shown", "What is shown as DOT…", "Save what is open as a DOT file"),
    dotWhole: button("export-dot", "Whole graph as DOT…", "Save all nodes with their clusters as a DOT file"),
  };
  const menu = h("div", { id: "export-menu", popover: "auto" }, buttons.svg, buttons.dotShown, buttons.dotWhole);
  const exporting = brief("export", "Export…", "⤓", "Save the graph as SVG or DOT");
  exporting.setAttribute("popovertarget", menu.id);
  exporting.addEventListener("click", () => {
    const { right, bottom } = exporting.getBoundingClientRect();
    menu.style.top = `${bottom + 4}px`;
    menu.style.right = `${document.documentElement.clientWidth - right}px`;
  });
  menu.addEventListener("click", () => menu.hidePopover());
  return { buttons, menu, exporting };
}

/** The picture, the tree that a screen reader reads in its place, and what lies on it. */
function makeCanvas(buttons: Page["buttons"]) {
  const picture = h("canvas", { id: "picture", "aria-hidden": "true" });
  const tree = h("div", {
    id: "tree",
    role: "tree",
    tabindex: "0",
    "aria-label":
      "Graph. Arrow keys move along the edges and between neighbours, Enter opens a cluster or goes to the source line, Alt+Enter goes to the line in the stage, Escape leaves the cluster.",
  });
  const minimap = h("canvas", { id: "minimap", "aria-hidden": "true", hidden: true });
  const legend = h("section", { id: "legend", "aria-label": "Colours", tabindex: "0" });
  const results = h("div", {
    id: "results",
    role: "listbox",
    "aria-label": "Matches",
    tabindex: "-1",
    hidden: true,
  });
  const zoom = h(
    "div",
    { id: "zoom", role: "group", "aria-label": "Zoom" },
    buttons.zoomOut,
    buttons.zoomIn,
    buttons.fit,
  );
  const canvas = h("main", { id: "canvas" }, picture, tree, zoom);

  return { canvas, picture, minimap, tree, legend, results };
}

function makeNotice() {
  const notice = {
    text: h("p", { id: "notice-text" }, "Loading the graph…"),
    detail: h("p", { id: "notice-detail" }),
    action: h("button", { type: "button", id: "notice-action", hidden: true }),
  };
  const noticeRoot = h("section", { id: "notice", role: "status" }, notice.text, notice.detail, notice.action);

  return { root: noticeRoot, ...notice };
}

function makeDetails() {
  const details = {
    name: h("strong", { id: "details-name" }),
    op: h("span", { id: "details-op" }),
    detail: h("code", { id: "details-detail" }),
    facts: h("dl", { id: "details-facts" }),
    links: h("div", { id: "details-links" }),
    actions: h("div", { id: "details-actions" }),
  };
  const detailsRoot = h(
    "footer",
    { id: "details", "aria-label": "The selected node", hidden: true },
    h(
      "div",
      { id: "details-text" },
      h("div", { id: "details-head" }, details.name, details.op, details.detail),
      details.facts,
      details.links,
    ),
    details.actions,
  );
  return { root: detailsRoot, ...details };
}

export function buildPage(): Page {
  const seeking = makeSearch();
  const { groupingLabel, grouping, colourLabel, colour, compareLabel, compare, targetLabel, target } = makeChoices();
  const { buttons, menu, exporting } = makeButtons();
  const summary = h("span", { id: "summary" });

  const toolbar = h(
    "div",
    { id: "toolbar", role: "toolbar", "aria-label": "Graph" },
    h("span", { class: "group", id: "seeking" }, ...Object.values(seeking)),
    h("span", { class: "group" }, buttons.expand, buttons.collapse, exporting),
    h("span", { class: "group", id: "choices" }, compareLabel, groupingLabel, colourLabel, targetLabel),
    menu,
  );

  const path = h("nav", { id: "path", "aria-label": "Where the selection is" });
  const where = h("div", { id: "where" }, path, summary);
  const onCanvas = makeCanvas(buttons);
  const [notice, details] = [makeNotice(), makeDetails()];
  const announcement = h("div", { id: "announcement", class: "only-read", role: "status", "aria-live": "polite" });

  const heading = h("h1", { class: "only-read" }, "Graph");
  const header = h("header", {}, heading, toolbar, onCanvas.results, where);
  onCanvas.canvas.append(announcement);
  document.body.append(header, onCanvas.canvas, onCanvas.minimap, notice.root, onCanvas.legend, details.root);
  return {
    ...onCanvas,
    ...seeking,
    grouping,
    colour,
    compare,
    compareLabel,
    targetLabel,
    target,
    summary,
    path,
    where,
    announcement,
    buttons,
    notice,
    details,
  };
}
