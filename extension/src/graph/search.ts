/** The nodes that a search finds, and the one it stands at. */

import type { DrawnNode } from "./picture";

export class Search {
  private found: DrawnNode[] = [];
  private index = -1;
  private text = "";

  constructor(private readonly nodes: Map<string, DrawnNode>) {}

  get matches(): readonly DrawnNode[] {
    return this.found;
  }

  get current(): DrawnNode | undefined {
    return this.found[this.index];
  }

  /** `3 of 12`, `no match`, or nothing when nothing is sought. */
  get status(): string {
    if (this.text === "") {
      return "";
    }
    return this.found.length === 0
      ? "no match"
      : `${this.index < 0 ? "" : `${this.index + 1} of `}${this.found.length}`;
  }

  /** Every word must occur in the node's name, operation or detail, in any case. */
  start(text: string): void {
    if (text === this.text) {
      return;
    }
    this.text = text;
    this.index = -1;
    const words = text
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    this.found = words.length === 0 ? [] : [...this.nodes.values()].filter((each) => matches(each, words));
    const found = new Set(this.found);
    for (const each of this.nodes.values()) {
      each.element.classList.toggle("match", found.has(each));
    }
    this.mark();
  }

  step(by: 1 | -1): DrawnNode | undefined {
    if (this.found.length > 0) {
      const next = this.index < 0 && by < 0 ? this.found.length - 1 : this.index + by;
      this.index = (next + this.found.length) % this.found.length;
    }
    this.mark();
    return this.current;
  }

  private mark(): void {
    for (const { element } of this.nodes.values()) {
      element.classList.remove("current-match");
    }
    this.current?.element.classList.add("current-match");
  }
}

function matches({ node }: DrawnNode, words: string[]): boolean {
  const text = `${node.name} ${node.op} ${node.detail}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
