/**
 * The SVG that Graphviz made, rebuilt element by element.
 *
 * Only what is listed here gets into the panel, so nothing in a trace can bring a script or a link along; colours and
 * fonts are left out, because graph.css takes them from the editor's theme.
 */

import type { GraphNode } from "../protocol";

const SVG = "http://www.w3.org/2000/svg";
const ELEMENTS = new Set(["svg", "g", "path", "polygon", "polyline", "ellipse", "text"]);
const ATTRIBUTES = new Set([
  "id",
  "class",
  "d",
  "points",
  "cx",
  "cy",
  "rx",
  "ry",
  "x",
  "y",
  "transform",
  "text-anchor",
  "font-size",
  "viewBox",
  "stroke-dasharray",
]);

export interface DrawnNode {
  node: GraphNode;
  element: SVGGElement;
  /** Centre and size in the SVG's own units. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** Ids of the nodes that this one uses, and of those that use it. */
  before: string[];
  after: string[];
  edges: SVGGElement[];
}

export interface Picture {
  svg: SVGSVGElement;
  nodes: Map<string, DrawnNode>;
  /** The whole graph in the SVG's own units. */
  box: { x: number; y: number; width: number; height: number };
}

export function drawPicture(svgText: string, nodes: GraphNode[], into: HTMLElement): Picture {
  const parsed = new DOMParser().parseFromString(svgText, "image/svg+xml").documentElement;
  if (parsed.nodeName !== "svg") {
    throw new Error("Graphviz made no picture.");
  }
  const idOfName = new Map<string, string>();
  const edges: { element: SVGGElement; from: string; to: string }[] = [];
  const svg = rebuild(parsed, (source, copy) => {
    const kind = source.getAttribute("class");
    const title = source.querySelector(":scope > title")?.textContent ?? "";
    if (kind?.startsWith("node")) {
      idOfName.set(title, source.id);
    } else if (kind?.startsWith("edge")) {
      copy.setAttribute("aria-hidden", "true");
      const [from, to] = title.split("->");
      edges.push({ element: copy as SVGGElement, from: from ?? "", to: to ?? "" });
    }
  }) as SVGSVGElement;
  const [x = 0, y = 0, width = 100, height = 100] = (svg.getAttribute("viewBox") ?? "").split(/\s+/).map(Number);
  for (const page of svg.querySelectorAll("g.graph polygon")) {
    if (page.closest(".node, .edge, .cluster") === null) {
      page.remove(); // The page behind the graph is the editor's own.
    }
  }
  svg.setAttribute("role", "group");
  into.replaceChildren(svg);

  const drawn = new Map<string, DrawnNode>();
  for (const node of nodes) {
    const element = svg.querySelector<SVGGElement>(`#${CSS.escape(node.id)}`);
    if (element !== null) {
      label(element, node);
      drawn.set(node.id, { node, element, ...centreOf(element, svg), before: [], after: [], edges: [] });
    }
  }
  for (const { element, from, to } of edges) {
    // A port may follow the node's name: `%x:s`. Names themselves may hold colons, so the whole is looked up first.
    const source = drawn.get(idOfName.get(from) ?? idOfName.get(from.replace(/:\w+$/, "")) ?? from);
    const target = drawn.get(idOfName.get(to) ?? idOfName.get(to.replace(/:\w+$/, "")) ?? to);
    source?.after.push(target?.node.id ?? "");
    target?.before.push(source?.node.id ?? "");
    source?.edges.push(element);
    target?.edges.push(element);
  }
  return { svg, nodes: drawn, box: { x, y, width, height } };
}

function rebuild(source: Element, visit: (source: Element, copy: Element) => void): Element {
  const copy = document.createElementNS(SVG, source.nodeName);
  for (const { name, value } of source.attributes) {
    if (ATTRIBUTES.has(name)) {
      copy.setAttribute(name, value);
    }
  }
  visit(source, copy);
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE && source.nodeName === "text") {
      copy.append(child.textContent ?? "");
    } else if (child instanceof Element && ELEMENTS.has(child.nodeName)) {
      copy.append(rebuild(child, visit));
    } else if (child instanceof Element && child.nodeName === "a") {
      copy.append(...rebuild(child, visit).childNodes);
    }
  }
  return copy;
}

function label(element: SVGGElement, node: GraphNode): void {
  element.setAttribute("role", "button");
  element.setAttribute("tabindex", "-1");
  element.setAttribute("aria-label", [node.name, node.op, node.detail].filter((part) => part !== "").join(", "));
  const tip = document.createElementNS(SVG, "title");
  tip.textContent = [node.name, node.op, node.detail].filter((part) => part !== "").join("\n");
  element.prepend(tip);
}

function centreOf(element: SVGGElement, svg: SVGSVGElement): { x: number; y: number; width: number; height: number } {
  const box = element.getBBox();
  const toSvg = svg
    .getScreenCTM()
    ?.inverse()
    .multiply(element.getScreenCTM() ?? new DOMMatrix());
  const centre = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2).matrixTransform(toSvg);
  return { x: centre.x, y: centre.y, width: box.width, height: box.height };
}
