/** The list of what a search found: shown below the search box, walked with the arrow keys. */

import type { GraphPanel } from "./panel";
import { h } from "../../panels/dom";
import type { Page } from "./page";

const MOST = 200;

export class Results {
  constructor(
    private readonly page: Page,
    private readonly choose: (index: number) => void,
  ) {
    page.results.addEventListener("pointerdown", (event) => {
      const entry = (event.target as HTMLElement).closest<HTMLElement>("[role=option]");
      if (entry !== null) {
        event.preventDefault(); // The search box keeps the focus.
        this.choose(Number(entry.dataset["index"]));
        this.hide();
      }
    });
    page.search.addEventListener("blur", () => this.hide());
  }

  get isShown(): boolean {
    return !this.page.results.hidden;
  }

  hide(): void {
    this.page.results.hidden = true;
    this.page.search.removeAttribute("aria-activedescendant");
  }

  show({ search, model }: GraphPanel): void {
    const { results, search: box } = this.page;
    if (search.matches.length === 0) {
      this.hide();
      return;
    }
    const begin = Math.max(0, Math.min(search.at - MOST / 2, search.matches.length - MOST));
    const entries = search.matches.slice(begin, begin + MOST).map((node, offset) => {
      const index = begin + offset;
      const isCurrent = index === search.at;
      const attributes = {
        role: "option",
        id: `match-${index}`,
        "data-index": String(index),
        "aria-selected": String(isCurrent),
      };
      return h(
        "div",
        attributes,
        h("span", { class: "match-name" }, model.name(node)),
        h("span", { class: "quiet" }, `${model.op(node)}  ${model.shape(node)}`),
        h("span", { class: "quiet" }, model.module(node)?.path.join(".") ?? ""),
      );
    });
    results.replaceChildren(...entries);
    if (search.matches.length > MOST) {
      results.append(h("div", { class: "quiet" }, `and ${search.matches.length - entries.length} more`));
    }
    results.hidden = false;
    const { left, bottom } = box.getBoundingClientRect();
    results.style.left = `${left}px`;
    results.style.top = `${bottom + 2}px`;
    const current = results.querySelector<HTMLElement>("[aria-selected=true]");
    current?.scrollIntoView({ block: "nearest" });
    if (current === null) {
      box.removeAttribute("aria-activedescendant");
    } else {
      box.setAttribute("aria-activedescendant", current.id);
    }
  }
}
