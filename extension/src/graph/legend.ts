/** What the colours mean, of those that occur. */

import type { Colouring } from "./colours";
import { make } from "./page";

const MOST = 8;

export function showLegend(section: HTMLElement, colours: Colouring, counts: readonly number[]): void {
  const present = colours.swatches
    .map((swatch, at) => ({ ...swatch, count: counts[at] ?? 0 }))
    .filter((swatch) => swatch.count > 0);
  const shown = colours.isScale ? present : present.sort((left, right) => right.count - left.count).slice(0, MOST);
  section.hidden = shown.length === 0;
  const list = shown.map(({ colour, text, sign }) => {
    const patch = make("span", { class: "patch", "aria-hidden": "true" }, sign ?? "");
    patch.style.setProperty("--patch", colour);
    return make("li", { title: text }, patch, make("span", {}, text));
  });
  const more = present.length - shown.length;
  section.replaceChildren(
    make("ul", {}, ...list, ...(more > 0 ? [make("li", { class: "quiet" }, `and ${more} more`)] : [])),
  );
}
