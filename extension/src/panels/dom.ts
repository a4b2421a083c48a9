/** Makes the elements of all pages. All text goes in as text: what a trace or a script is called never becomes markup. */

import { visible, visibleIn } from "./visible";

type Child = Node | string | null | undefined | false;
type Listeners = { [Type in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Type]) => void };
type Value = string | number | boolean | undefined;

/** By name; undefined leaves one out. */
export interface Attributes {
  /** `true` is the attribute without a value, `false` leaves it out; of `aria-…` they are the values. */
  [name: string]: Value | Listeners | Record<string, string>;
  style?: Record<string, string>;
  on?: Listeners;
}

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  { style = {}, on = {}, ...attributes }: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes as Record<string, Value>)) {
    set(element, name, value);
  }
  for (const [name, value] of Object.entries(style)) {
    element.style.setProperty(name, value);
  }
  for (const [type, listener] of Object.entries(on)) {
    element.addEventListener(type, listener as EventListener);
  }
  element.append(...shown(children));
  return element;
}

function set(element: Element, name: string, value: Value): void {
  if (typeof value === "boolean" && !name.startsWith("aria-")) {
    element.toggleAttribute(name, value);
  } else if (value !== undefined) {
    element.setAttribute(name, visibleIn(name, String(value)));
  }
}

function shown(children: Child[]): (Node | string)[] {
  return children
    .filter((child): child is Node | string => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === "string" ? visible(child) : child));
}

const SVG = "http://www.w3.org/2000/svg";

export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string | number> = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    set(element, name, value);
  }
  element.append(...shown(children));
  return element;
}

export function button(text: string, run: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", ...attributes, on: { click: () => run() } }, text);
}

/** Text in which words between backticks are code. */
export function rich(text: string): (Node | string)[] {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? h("code", {}, part) : part));
}

/** A select with a label that only a screen reader hears. */
export function select<Value extends string>(
  label: string,
  options: { value: Value; text: string }[],
  chosen: Value | undefined,
  change: (value: Value) => void,
): HTMLSelectElement {
  const element = h("select", { "aria-label": label, title: label });
  for (const { value, text } of options) {
    const option = h("option", {}, text);
    option.value = value;
    option.selected = value === chosen;
    element.append(option);
  }
  element.addEventListener("change", () => change(element.value as Value));
  return element;
}

/** Leaves an unchanged text alone, so that a screen reader does not say it again. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== visible(text)) {
    element.textContent = visible(text);
  }
}

/** Says something to a screen reader, once the page has it. */
export function announce(text: string): void {
  let region = document.getElementById("announcements");
  if (region === null) {
    region = h("div", { id: "announcements", class: "only-read", role: "status", "aria-live": "polite" });
    document.body.append(region);
  }
  setText(region, text);
}
