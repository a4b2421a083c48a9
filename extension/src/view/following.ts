/**
 * Follows a script: when a newer run of it has ended, what is open of the run that is shown gives way to the newer one.
 * A run that was an old one already when it was opened stays: it is looked at on purpose.
 */

import { h } from "../panels/dom";
import type { RunItem } from "../protocol";
import { visible } from "../panels/visible";
import type { Opened } from "./opened";
import { baseName } from "./runs";
import { request } from "./server";
import * as units from "../units";
import { button, toast } from "./widgets";

const KEY = "irscope-follow";

export class Following {
  private readonly toggle = button("Follow new runs", () => this.turned(), { class: "toggle" });
  private readonly said = h("span", { class: "news", role: "status" });
  private runs: RunItem[] = [];
  readonly elements = [this.said, this.toggle];
  private on = window.localStorage.getItem(KEY) !== "no";
  /** A run that had ended before is not followed: it was opened on purpose. */
  private readonly ended = new Set<string>();
  private last: Promise<void> = Promise.resolve();

  /** @param runs the list when the page was opened */
  constructor(
    private readonly opened: Opened,
    runs: RunItem[],
  ) {
    this.fresh(runs);
    this.set(this.on);
  }

  /** The list of runs, the newest first, has changed. A script that runs again meanwhile waits for its turn. */
  heard(runs: RunItem[]): Promise<void> {
    const fresh = this.fresh(runs);
    return this.inTurn(async () => {
      const newest = !runs.some((each) => this.isNewer(each) && !fresh.includes(each));
      await (newest ? this.follow(fresh) : undefined);
    });
  }

  /** Turned on, it shows the newest run of what is shown at once. */
  private turned(): void {
    this.set(!this.on);
    void this.inTurn(() => this.follow(this.runs)).catch((error: Error) => toast(error.message, "error"));
  }

  private inTurn(action: () => Promise<void>): Promise<void> {
    const mine = this.last.then(action);
    this.last = mine.catch(() => undefined);
    return mine;
  }

  private fresh(runs: RunItem[]): RunItem[] {
    this.runs = runs;
    const fresh = runs.filter(({ run, outcome }) => outcome !== null && !this.ended.has(run));
    fresh.forEach(({ run }) => this.ended.add(run));
    return fresh;
  }

  private get shown(): RunItem | undefined {
    return this.runs.find((each) => each.run === this.opened.panes.front?.subject().run);
  }

  private isNewer(item: RunItem): boolean {
    const shown = this.shown;
    return (
      shown !== undefined &&
      item.outcome !== null &&
      this.runs.indexOf(item) < this.runs.indexOf(shown) && // the list has the newest first; a clock may jump
      follows(item, shown)
    );
  }

  /** @param among the newest first */
  private async follow(among: RunItem[]): Promise<void> {
    const shown = this.shown;
    const item = among.find((each) => this.isNewer(each));
    if (!this.on || shown === undefined || item === undefined) {
      return;
    }
    await this.opened.follow(item, shown.run);
    const said = `${baseName(item.script)} ran again at ${units.clock(item.started)}`;
    this.said.textContent = visible(said);
    const { summary } = await request<{ summary: string }>("irscope/changes", { run: item.run, since: shown.run });
    if (summary !== "") {
      this.said.textContent = visible(`${said}: ${summary}`);
    }
  }

  private set(on: boolean): void {
    this.on = on;
    window.localStorage.setItem(KEY, on ? "yes" : "no");
    this.toggle.setAttribute("aria-pressed", String(on));
    this.toggle.title = on
      ? "When a newer run of the script ends, it is shown in place of this one"
      : "Newer runs do not replace it";
  }
}

/** A fast run has less than a deep one: it does not take its place. */
function follows(newer: RunItem, shown: RunItem): boolean {
  return (
    newer.outcome !== "cancelled" &&
    newer.script === shown.script &&
    (newer.lane === shown.lane || newer.lane === "deep")
  );
}
