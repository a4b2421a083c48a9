/** What the colours mean, of those that occur. */

import type { Colouring } from "../draw/colours";
import { h } from "../../panels/dom";

const MOST = 8;
/** Letters at the end of a long name that are always shown. */
const KEPT = 14;

export function showLegend(section: HTMLElement, colours: Colouring, counts: readonly number[]): void {
  const present = colours.swatches
    .map((swatch, at) => ({ ...swatch, count: counts[at] ?? 0 }))
    .filter((swatch) => swatch.count > 0);
  const shown = colours.isScale ? present : present.sort((left, right) => right.count - left.count).slice(0, MOST);
  section.hidden = shown.length === 0 && colours.heading === undefined;
  const list = shown.map(({ colour, text, sign }) => {
    const patch = h("span", { class: "patch", "aria-hidden": "true" }, sign ?? "");
    patch.style.setProperty("--patch", colour);
    return h("li", { title: text }, patch, h("span", {}, ...ends(text)));
  });
  const more = present.length - shown.length;
  section.replaceChildren(
    ...(colours.heading === undefined ? [] : [h("p", { class: "quiet" }, colours.heading)]),
    h("ul", {}, ...list, ...(more > 0 ? [h("li", { class: "quiet" }, `and ${more} more`)] : [])),
  );
}

/** A text in two parts of which only the first is shortened: long names differ at their end. */
function ends(text: string): (Node | string)[] {
  if (text.length <= KEPT * 2) {
    return [text];
  }
  return [h("span", {}, text.slice(0, -KEPT)), h("span", {}, text.slice(-KEPT))];
}
