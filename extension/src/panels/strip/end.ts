/** The last card of a compile that gave no code: why it ends there. A click shows the place of the cause. */

import * as bridge from "../bridge";
import { h } from "../dom";
import type { Pipeline } from "../results";

export function endElement({ text, place }: NonNullable<Pipeline["end"]>): HTMLElement {
  const card = h(place === null ? "p" : "button", { class: "card-end" }, text);
  if (place !== null) {
    card.title = "Show the cause";
    card.addEventListener("click", () => bridge.open(place));
  }
  return card;
}
