/** Says on a page that the run that it shows is an older one of its script. */

import { h, setText } from "./dom";
import type { Age as Answer } from "./results";

type Ask = (method: "irscope/age", params: { run: string }) => Promise<Answer>;

export class Age {
  readonly element = h("span", { class: "age", role: "status" });
  /** Counts what was asked for, so that an answer that is late is passed over. */
  private asked = 0;

  constructor(private readonly ask: Ask) {}

  /** @param run what is shown; undefined if nothing is, and then nothing is said */
  async show(run: string | undefined): Promise<void> {
    this.asked += 1;
    const mine = this.asked;
    try {
      const { text } = run === undefined ? { text: "" } : await this.ask("irscope/age", { run });
      if (mine === this.asked) {
        setText(this.element, text);
      }
    } catch {
      // The view says what is wrong.
    }
  }
}
