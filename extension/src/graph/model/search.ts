/** The nodes that a search finds, and the current one. */

import type { Forest } from "./clusters";
import { CALL, titleOf, type Model } from "./model";

/** `op:`, `dtype:`, `device:`, `module:`, `kernel:`, `name:`, `change:` look at one fact; words without look at all. */
const FIELDS: Record<string, (model: Model, node: number) => readonly string[]> = {
  op: (model, node) => [...namesOf(model.op(node)), ...model.originals(node).flatMap(namesOf)],
  name: (model, node) => [model.name(node)],
  dtype: (model, node) => [model.dtype(node)],
  device: (model, node) => [model.device(node)],
  shape: (model, node) => [model.shape(node)],
  module: (model, node) => [model.module(node)?.path.join(".") ?? "", model.module(node)?.type ?? ""],
  kernel: (model, node) => model.kernels(node).map((call) => model.kernelCalls?.[call]?.name ?? ""),
  change: (model, node) => [["same", "added", "removed", "changed"][model.state(node)] ?? ""],
};

/** How well a word fits, the best first. */
const [EXACT, BEGINNING, INSIDE, NOT] = [0, 1, 2, 3];

/** An operation by all names that people know it by: `aten._softmax`, `_softmax`, `softmax`. */
function namesOf(operation: string): string[] {
  const title = titleOf(operation);
  const last = title.split(".").at(-1) ?? title;
  return [operation, title, last, last.replace(/^_+/, "")];
}

export class Search {
  private found: number[] = [];
  private isFound: Uint8Array;
  private before: Uint32Array | undefined;
  private index = -1;
  private text = "";

  constructor(
    private readonly model: Model,
    private forest: Forest,
  ) {
    this.isFound = new Uint8Array(model.count);
  }

  get isOn(): boolean {
    return this.text !== "";
  }

  get matches(): readonly number[] {
    return this.found;
  }

  get current(): number | undefined {
    return this.found[this.index];
  }

  get at(): number {
    return this.index;
  }

  /** `3 of 12`, `no match`, or empty without a search. */
  get status(): string {
    if (!this.isOn) {
      return "";
    }
    return this.found.length === 0
      ? "no match"
      : `${this.index < 0 ? "" : `${this.index + 1} of `}${this.found.length}`;
  }

  /**
   * Every word must fit, in any case. Exact names come first, then names that begin with the words, then all others;
   * nodes that fit as well are in the order of the graph. Says whether anything is new.
   */
  start(text: string): boolean {
    const trimmed = text.trim();
    if (trimmed === this.text) {
      return false;
    }
    this.text = trimmed;
    this.index = -1;
    this.before = undefined;
    const tests = trimmed
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "")
      .map((word) => testOf(this.model, word));
    this.isFound = new Uint8Array(this.model.count);
    const byFit: number[][] = tests.length > 0 ? [[], [], []] : [];
    for (let node = 0; tests.length > 0 && node < this.model.count; node += 1) {
      const fit = tests.reduce((worst, test) => (worst === NOT ? NOT : Math.max(worst, test(node))), EXACT);
      if (fit !== NOT) {
        byFit[fit]?.push(node);
        this.isFound[node] = 1;
      }
    }
    this.found = byFit.flat();
    return true;
  }

  has(node: number): boolean {
    return this.isFound[node] === 1;
  }

  /** How many matches there are among `order[first]` to `order[last - 1]`. */
  countIn(first: number, last: number): number {
    if (this.before === undefined) {
      this.before = new Uint32Array(this.forest.order.length + 1);
      for (let at = 0; at < this.forest.order.length; at += 1) {
        this.before[at + 1] = (this.before[at] ?? 0) + (this.isFound[this.forest.order[at] ?? 0] ?? 0);
      }
    }
    return (this.before[last] ?? 0) - (this.before[first] ?? 0);
  }

  /** The graph was folded in another way. */
  refold(forest: Forest): void {
    this.forest = forest;
    this.before = undefined;
  }

  step(by: 1 | -1): number | undefined {
    if (this.found.length > 0) {
      const next = this.index < 0 && by < 0 ? this.found.length - 1 : this.index + by;
      this.index = (next + this.found.length) % this.found.length;
    }
    return this.current;
  }

  goTo(index: number): number | undefined {
    this.index = index;
    return this.current;
  }
}

/** How well a word fits each node. */
function testOf(model: Model, word: string): (node: number) => number {
  const [, field = "", value = ""] = /^([a-z]+):(.+)$/.exec(word) ?? [];
  const fact = FIELDS[field];
  if (fact !== undefined) {
    return (node) => fitOf(fact(model, node), value);
  }
  return (node) => (model.text(node).includes(word) ? Math.min(fitOf(namesAlone(model, node), word), INSIDE) : NOT);
}

/** What a word without a field is compared with as a whole. */
function namesAlone(model: Model, node: number): readonly string[] {
  return model.kind(node) === CALL ? [model.name(node), ...namesOf(model.op(node))] : [model.name(node)];
}

function fitOf(texts: readonly string[], word: string): number {
  let best = NOT;
  for (const text of texts) {
    const lower = text.toLowerCase();
    if (lower === word) {
      return EXACT;
    }
    if (best > BEGINNING && lower.includes(word)) {
      best = lower.startsWith(word) ? BEGINNING : INSIDE;
    }
  }
  return best;
}
