/** Lays out what is open, says so where it takes long, and lets it be cancelled. */

import type { Forest } from "../model/clusters";
import type { Labels } from "../draw/labels";
import { LayoutCancelled, type Layouter } from "../layout/layout";
import type { Model } from "../model/model";
import { hideNotice, notice } from "./notice";
import { setText } from "../../panels/dom";
import type { Page } from "./page";
import { arrange } from "../layout/scene";
import type { GraphView } from "./view";

/** After this long it is said that something is being laid out. */
const PATIENCE_MS = 350;

/** `as before`: it was cancelled, and the last picture stays; `passed over`: something else is being laid out now. */
export type Outcome = "shown" | "as before" | "failed" | "passed over";

export class Arranger {
  private asked = 0;

  constructor(
    private readonly page: Page,
    private readonly view: GraphView,
    private readonly layouter: Layouter,
    private readonly again: () => void,
  ) {}

  /** `still`: an item whose box keeps its place on the screen. */
  async arrange(
    model: Model,
    forest: Forest,
    open: ReadonlySet<number>,
    labels: Labels,
    still?: number,
  ): Promise<Outcome> {
    this.asked += 1;
    const mine = this.asked;
    const { page, view } = this;
    let said = false;
    const say = (done: number, of: number): void => {
      notice(page, "Laying out the graph…", of > 1 ? `${done} of ${of} clusters` : "", {
        text: "Cancel",
        run: () => this.layouter.cancel(),
      });
    };
    const timer = setTimeout(() => {
      said = true;
      say(0, 0);
    }, PATIENCE_MS);
    const onStep = (done: number, of: number): void => {
      if (said) {
        say(done, of);
      }
    };
    try {
      const scene = await arrange(model, forest, open, this.layouter, (item) => labels.sizeOf(item), onStep);
      if (mine !== this.asked) {
        return "passed over";
      }
      view.show(scene, still);
      hideNotice(page);
      return "shown";
    } catch (error) {
      if (mine !== this.asked) {
        return "passed over";
      }
      const isCancelled = error instanceof LayoutCancelled;
      if (isCancelled && view.scene !== undefined) {
        hideNotice(page);
        setText(page.announcement, "The layout was cancelled; what was shown before is shown again.");
        return "as before";
      }
      const detail = isCancelled || !(error instanceof Error) ? "" : error.message;
      notice(page, isCancelled ? "The layout was cancelled." : "The graph could not be laid out.", detail, {
        text: "Lay Out Again",
        run: this.again,
      });
      return "failed";
    } finally {
      clearTimeout(timer);
    }
  }
}
