/** What the panels have in common: a view fills an element from a subject, alone in its page or as a tab of the dock. */

import { Age } from "./age";
import * as bridge from "./bridge";
import { button, h, rich } from "./dom";
import type { Place } from "../protocol";
import type { Subject } from "./messages";
import { capital, fileName, placeText } from "./text";

export interface View {
  readonly element: HTMLElement;
  show(subject: Subject): void;
  /** The store has something new about the run that is shown. */
  refresh(): void;
  /** The cursor of an editor moved. */
  cursor?(place: Place): void;
  /** Takes the focus, as a tab does when it was chosen. */
  focus(): void;
}

/** What a view tells its surroundings. */
export interface Surroundings {
  /** Another compile of the run was chosen. */
  choseCompile(compile: string): void;
}

/** A view of a run: of the last deep one of its script, if there is one. */
export abstract class RunView<Result> implements View {
  protected readonly toolbar = h("div", { class: "toolbar" });
  protected readonly body: HTMLElement;
  readonly element: HTMLElement;
  private readonly loader: Loader<Result>;
  private run = "";

  /** @param what is read from the answer to `method`, as a message says it; @param look classes of the body */
  constructor(
    private readonly method: `irscope/${string}`,
    what: string,
    look: string,
  ) {
    this.body = h("div", { class: `body ${look}` });
    this.element = h("section", { class: "view" }, this.toolbar, this.body);
    this.loader = new Loader<Result>(this.body, what, (result) => this.draw(result));
  }

  protected abstract draw(result: Result): void;

  show({ run, deep }: Subject): void {
    if ((deep ?? run) !== this.run) {
      this.run = deep ?? run;
      this.refresh();
    }
  }

  refresh(): void {
    if (this.run !== "") {
      void this.loader.load(this.method, { run: this.run });
    }
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("button")?.focus();
  }
}

/** Asks for something and fills an element with it; a newer question makes the answer of an older one void. */
export class Loader<Result> {
  private newest = 0;

  constructor(
    private readonly body: HTMLElement,
    private readonly what: string,
    private readonly draw: (result: Result) => void,
  ) {}

  async load(method: `irscope/${string}`, params: object): Promise<void> {
    this.newest += 1;
    const mine = this.newest;
    const late = setTimeout(() => this.body.replaceChildren(notice(`Reading ${this.what}…`)), 250);
    const started = performance.now();
    try {
      const result = await bridge.request<Result>(method, params);
      if (mine === this.newest) {
        clearTimeout(late);
        this.draw(result);
        bridge.post({ type: "drawn", what: this.what, milliseconds: performance.now() - started });
      }
    } catch (error) {
      if (mine === this.newest) {
        clearTimeout(late);
        const again = button("Try Again", () => void this.load(method, params), { class: "primary" });
        const message = error instanceof Error ? error.message : String(error);
        this.body.replaceChildren(notice(`${capital(this.what)} could not be read.`, message, again));
      }
    } finally {
      clearTimeout(late);
    }
  }
}

/** An empty state: what is not there, why, and what to do. */
export function notice(text: string, detail = "", action?: HTMLElement): HTMLElement {
  return h(
    "div",
    { class: "notice", role: "status" },
    h("p", { class: "notice-text" }, ...rich(text)),
    detail !== "" && h("p", { class: "notice-detail" }, ...rich(detail)),
    action,
  );
}

/** Where a run is needed first; only an editor can start one. */
export function runButton(): HTMLElement | undefined {
  return bridge.inEditor
    ? button("Analyze This File", () => bridge.post({ type: "run" }), { class: "primary" })
    : undefined;
}

/** A link to a line of the user's text or of a stage. Where there is little room the name of the file is cut, not the line. */
export function placeLink(place: Place, text?: string): HTMLButtonElement {
  const attributes = { class: "link", title: decodeURIComponent(place.uri) };
  if (text !== undefined) {
    return button(text, () => bridge.open(place), attributes);
  }
  // What is read aloud is one word, as it is seen.
  const whole = { ...attributes, class: "link place-link", "aria-label": placeText(place) };
  const link = button("", () => bridge.open(place), whole);
  link.append(h("span", {}, fileName(place.uri)), h("span", {}, `:${place.line + 1}`));
  return link;
}

/** Makes a page of one view. */
export function alone(create: (surroundings: Surroundings) => View): void {
  let subject: Subject | undefined;
  const view = create({
    choseCompile: (compile) => {
      if (subject !== undefined) {
        subject = { ...subject, compile };
        bridge.remember({ subject });
      }
    },
  });
  const age = new Age(bridge.request);
  document.body.classList.add("alone");
  document.body.append(age.element, view.element);
  bridge.on("subject", ({ subject: given }) => {
    subject = given;
    bridge.remember({ subject });
    view.show(given);
    void age.show(given.run);
  });
  bridge.on("changed", ({ run, running }) => {
    if (!running) {
      void age.show(subject?.run);
    }
    if (run === subject?.run || run === subject?.deep) {
      view.refresh();
    }
  });
  bridge.on("cursor", ({ place }) => view.cursor?.(place));
  bridge.ready();
}
