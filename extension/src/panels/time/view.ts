/** Where the compile time went, by what was compiled and by phase; of a model that was compiled in pieces, these by size. */

import { button, h } from "../dom";
import { phaseTitle } from "../measures/tree";
import { TreeView } from "../measures/treeView";
import type { Phases } from "../results";
import { notice, runButton, RunView, type View } from "../view";
import * as units from "../../units";
import { PARTS, partOf } from "./parts";
import { pieceTable } from "./pieces";

export function create(): View {
  return new TimeView();
}

class TimeView extends RunView<Phases> {
  private readonly tree = new TreeView({
    title: "Compile time by phase",
    noun: ["phase", "phases"],
    titleOf: phaseTitle,
    classOf: partOf,
    legend: PARTS.map(({ part, title }) => ({ tone: part, title })),
    isFlame: true,
  });
  private showsPieces = false;

  constructor() {
    super("irscope/phases", "the compile times", "time-body");
  }

  override focus(): void {
    this.tree.focus();
  }

  protected override draw(result: Phases): void {
    const { phases, compiles, pieces, reason } = result;
    const hasPieces = pieces.rows.length > 0;
    if (compiles === 0 && !hasPieces) {
      this.toolbar.replaceChildren();
      this.body.replaceChildren(notice("No compile times to show.", reason, runButton()));
      return;
    }
    const whole = phases.rows[0]?.whole[0] ?? 0;
    this.showsPieces = hasPieces && (this.showsPieces || compiles === 0);
    const change = (): void => {
      this.showsPieces = !this.showsPieces;
      this.draw(result);
    };
    this.toolbar.replaceChildren(
      ...(compiles === 0
        ? []
        : [
            h("strong", {}, units.duration(whole)),
            h("span", { class: "dim" }, `in ${units.count(compiles, "compile")}`),
          ]),
      h("span", { class: "spacer" }),
      ...(compiles > 0 && hasPieces ? [button(this.showsPieces ? "Phases" : "Pieces", change)] : []),
    );
    if (this.showsPieces) {
      this.body.replaceChildren(h("div", { class: "scroll" }, pieceTable(pieces)));
      return;
    }
    this.body.replaceChildren(this.tree.element);
    this.tree.take(phases, { title: "% of All", whole });
    this.tree.draw();
  }
}
