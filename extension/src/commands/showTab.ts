/** IRScope: Show Pipeline, Findings, Compile Time, Memory, Changes — tabs of the view in the panel area. */

import { titleOf } from "../host/dock";
import type { Subject, Tab } from "../panels/messages";
import type { Element } from "../host/runItems";
import type { Services } from "./context";

/** From a run or a compile of the tree the tab shows that one, else what the editor is about. */
export async function showTab({ dock }: Services, tab: Tab, element?: Element): Promise<void> {
  await dock.show(tab, subjectOf(element));
}

function subjectOf(element: Element | undefined): Subject | undefined {
  switch (element?.kind) {
    case "run":
      return { run: element.item.run, title: titleOf(element.item) };
    case "compile":
      return { run: element.run.run, compile: element.item.id, title: titleOf(element.run) };
    default:
      return undefined;
  }
}
