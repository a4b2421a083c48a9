/**
 * What a panel asks for first, asked while its page is still being loaded: the server works on the answer meanwhile.
 * Both hosts of panels use it: the extension and the page of `irscope view`.
 */

import type { PanelName, Subject } from "./messages";

export interface Request {
  method: string;
  params: object;
}

/** A comparison that the graph panel shows in place of its stage. */
export interface Change {
  stage: string;
  before: string;
}

/** The graph panel's request, made in one place so that what is asked ahead is what the panel asks for. */
export function graphRequest({ run, stage = "" }: Subject, change?: Change): Request & { method: "irscope/graph" } {
  return {
    method: "irscope/graph",
    params: {
      run,
      ...(change === undefined ? { stage } : { stage: change.stage, compareWith: change.before }),
      asText: true,
    },
  };
}

/** What a panel with this state will ask for first, as far as it is worth asking ahead. */
function firstOf(panel: PanelName, subject: Subject, state: unknown): Request | undefined {
  return panel === "graph" ? graphRequest(subject, (state as { change?: Change } | undefined)?.change) : undefined;
}

export class Ahead {
  private asked: { key: string; answer: Promise<unknown> } | undefined;

  /** @param state what the panel has kept of the last time */
  constructor(
    panel: PanelName,
    subject: Subject,
    state: unknown,
    private readonly ask: (request: Request) => Promise<unknown>,
  ) {
    const first = firstOf(panel, subject, state);
    if (first !== undefined) {
      const answer = ask(first);
      answer.catch(() => undefined); // The caller that asks for it gets the error.
      this.asked = { key: JSON.stringify(first), answer };
    }
  }

  /** The answer that is on its way, once; to everything else a new one. */
  answer({ method, params }: Request): Promise<unknown> {
    const { asked } = this;
    this.asked = undefined; // It is not kept: it may be megabytes, and asking again is to bring what is new.
    return asked?.key === JSON.stringify({ method, params }) ? asked.answer : this.ask({ method, params });
  }
}
