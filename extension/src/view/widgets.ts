/** What the page shows again and again: buttons, icons, and lines that say what goes on. */

import { h, s, type Attributes } from "../panels/dom";
import { REGISTRY, type Tab } from "../panels/registry";
import { visible } from "../panels/visible";

export function button(label: string, action: () => void, attributes: Attributes = {}, icon?: IconName): HTMLElement {
  const made = h("button", { type: "button", title: label, ...attributes });
  if (icon === undefined) {
    made.append(visible(label));
  } else {
    made.setAttribute("aria-label", visible(label));
    made.append(iconOf(icon));
  }
  made.addEventListener("click", action);
  return made;
}

/** Drawn for a square of 16. */
const ICONS = {
  chevron: "M6 3.5 10.5 8 6 12.5",
  close: "M4 4l8 8M12 4l-8 8",
  pass: "M3 8.5 6.5 12 13 4.5",
  error: "M8 2.5v7M8 12.2v1.3",
  stopped: "M3.8 3.8l8.4 8.4M8 14A6 6 0 1 1 8 2a6 6 0 0 1 0 12z",
  watch: "M8 4.5V8l2.5 1.5M8 14A6 6 0 1 1 8 2a6 6 0 0 1 0 12z",
  running: "M8 2a6 6 0 1 1-5.6 3.9",
  unfinished: "M8 2a6 6 0 0 1 0 12M8 14A6 6 0 0 1 8 2",
  compile: "M2.5 5 8 2l5.5 3v6L8 14l-5.5-3zM2.5 5 8 8l5.5-3M8 8v6",
  break: "M2 8h4M10 8h4M6 5v6M10 5v6",
  skip: "M3 11V9a5 5 0 0 1 10 0v2M10.5 9 13 11.5 15.5 9",
  file: "M4 1.8h5.5L12.5 5v9.2H4zM9.2 2v3.3h3.2",
  graph: "M6 2.5h4v3H6zM2 10.5h4v3H2zM10 10.5h4v3h-4zM8 5.5V8M4 10.5V8h8v2.5",
  kernel: "M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  folder: "M2 4h4l1.5 2H14v7H2z",
  info: "M8 14A6 6 0 1 1 8 2a6 6 0 0 1 0 12zM8 7v4M8 4.6v.8",
  split: "M2 3h12v10H2zM8 3v10",
  compare: "M6.5 3H2.5v10h4M9.5 3h4v10h-4M8 1.5v13",
  link: "M7 9.5 9.5 7M6 7.5 4 9.5a2.1 2.1 0 0 0 3 3l2-2M10 8.5l2-2a2.1 2.1 0 0 0-3-3l-2 2",
  refresh: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.6h-2.6",
  theme: "M8 14A6 6 0 1 1 8 2a6 6 0 0 1 0 12zM8 2v12",
} as const;

/** The icon of a tab of the dock is declared with it. */
export type IconName = keyof typeof ICONS | Tab;

export function iconOf(name: IconName): SVGElement {
  const d = name in REGISTRY ? REGISTRY[name as Tab].icon : ICONS[name as keyof typeof ICONS];
  const attributes = { viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true" };
  return s("svg", attributes, s("path", { d }));
}

let numbers = 0;

/** An id that no other element has. */
export function newId(prefix: string): string {
  numbers += 1;
  return `${prefix}-${numbers}`;
}

/** Shows a line until the function that it gives is called. */
export function busy(text: string): () => void {
  const line = h("div", { class: "toast info", role: "status" }, iconOf("running"), h("span", {}, text));
  document.getElementById("toasts")?.append(line);
  return () => line.remove();
}

/** Shows a line that goes by itself; errors stay longer. */
export function toast(text: string, kind: "info" | "error" = "info"): void {
  const host = document.getElementById("toasts");
  const line = h("div", { class: `toast ${kind}`, role: kind === "error" ? "alert" : "status" }, text);
  const gone = (): void => line.remove();
  line.append(button("Close", gone, {}, "close"));
  host?.append(line);
  window.setTimeout(gone, kind === "error" ? 12_000 : 4_000);
}
