/** Follows a script: when a newer run of it has ended, what is open of the run that is shown gives way to the newer one. */

import type { RunItem } from "../protocol";
import { button, el } from "./dom";
import type { Opened } from "./opened";
import { baseName } from "./runs";
import { request } from "./server";
import { time } from "../format";

const KEY = "irscope-follow";

export class Following {
  private readonly toggle = button("Follow new runs", () => this.set(!this.on), { class: "toggle" });
  private readonly said = el("span", { class: "news", role: "status" });
  readonly elements = [this.said, this.toggle];
  private on = window.localStorage.getItem(KEY) !== "no";

  constructor(private readonly opened: Opened) {
    this.set(this.on);
  }

  /** The list of runs, the newest first, and the one of which something new was told. */
  async heard(runs: RunItem[], run: string): Promise<void> {
    const item = runs.find((each) => each.run === run);
    const shown = runs.find((each) => each.run === this.opened.panes.front?.subject().run);
    if (!this.on || item === undefined || shown === undefined || !follows(item, shown)) {
      return;
    }
    await this.opened.follow(item, shown.run);
    this.said.textContent = `${baseName(item.script)} ran again at ${time(item.started)}`;
    const { summary } = await request<{ summary: string }>("irscope/changes", { run: item.run, since: shown.run });
    if (summary !== "") {
      this.said.textContent += `: ${summary}`;
    }
  }

  private set(on: boolean): void {
    this.on = on;
    window.localStorage.setItem(KEY, on ? "yes" : "no");
    this.toggle.setAttribute("aria-pressed", String(on));
    this.toggle.title = on
      ? "When a newer run of the script ends, it is shown in place of this one"
      : "What is shown stays, whatever runs";
  }
}

/** A fast run has less than a deep one: it does not take its place. */
function follows(newer: RunItem, shown: RunItem): boolean {
  return (
    newer.outcome !== null &&
    newer.outcome !== "cancelled" &&
    newer.script === shown.script &&
    newer.started > shown.started &&
    (newer.lane === shown.lane || newer.lane === "deep")
  );
}
