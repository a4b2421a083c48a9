/** Makes elements. All text goes in as text: what a trace or a script is called never becomes markup. */

import { visible, visibleIn } from "./visible";

type Child = Node | string | null | undefined | false;

export interface Properties {
  class?: string;
  id?: string;
  title?: string;
  hidden?: boolean;
  disabled?: boolean;
  tabIndex?: number;
  /** Any other attributes, `role` and `aria-…` among them; undefined leaves one out. */
  attributes?: Record<string, string | number | boolean | undefined>;
  style?: Record<string, string>;
  on?: { [Type in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Type]) => void };
}

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  if (properties.class !== undefined) {
    element.className = properties.class;
  }
  if (properties.id !== undefined) {
    element.id = properties.id;
  }
  if (properties.title !== undefined) {
    element.title = visible(properties.title);
  }
  if (properties.tabIndex !== undefined) {
    element.tabIndex = properties.tabIndex;
  }
  element.hidden = properties.hidden ?? false;
  if (properties.disabled === true) {
    element.setAttribute("disabled", "");
  }
  for (const [name, value] of Object.entries(properties.attributes ?? {})) {
    if (value !== undefined) {
      element.setAttribute(name, visibleIn(name, String(value)));
    }
  }
  for (const [name, value] of Object.entries(properties.style ?? {})) {
    element.style.setProperty(name, value);
  }
  for (const [type, listener] of Object.entries(properties.on ?? {})) {
    element.addEventListener(type, listener as EventListener);
  }
  element.append(...shown(children));
  return element;
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
    element.setAttribute(name, visibleIn(name, String(value)));
  }
  element.append(...shown(children));
  return element;
}

export function button(text: string, run: () => void, properties: Properties = {}): HTMLButtonElement {
  return h(
    "button",
    { ...properties, attributes: { type: "button", ...properties.attributes }, on: { click: () => run() } },
    text,
  );
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
  const element = h("select", { attributes: { "aria-label": label }, title: label });
  for (const { value, text } of options) {
    const option = h("option", {}, text);
    option.value = value;
    option.selected = value === chosen;
    element.append(option);
  }
  element.addEventListener("change", () => change(element.value as Value));
  return element;
}

/** Says something to a screen reader, once the page has it. */
export function announce(text: string): void {
  let region = document.getElementById("announcements");
  if (region === null) {
    region = h("div", {
      id: "announcements",
      class: "only-read",
      attributes: { role: "status", "aria-live": "polite" },
    });
    document.body.append(region);
  }
  if (region.textContent !== visible(text)) {
    region.textContent = visible(text);
  }
}
