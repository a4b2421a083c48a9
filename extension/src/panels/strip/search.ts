/** Where in the pipeline a pass or an operation occurs. */

import * as units from "../../units";
import type { PipelineStage } from "../results";

export interface Matches {
  passes: number;
  /** Calls of matching operations, not kinds of them. */
  ops: number;
  total: number;
}

export function isMatch(text: string, wanted: string): boolean {
  return wanted.trim() !== "" && text.toLowerCase().includes(wanted.trim().toLowerCase());
}

/** By the id of the stage; those without a match are not in it. */
export function matchesOf(stages: PipelineStage[], wanted: string): Map<string, Matches> {
  const found = new Map<string, Matches>();
  for (const stage of stages) {
    const passes = [...stage.passes, ...stage.quiet].filter(({ name }) => isMatch(name, wanted)).length;
    const ops = stage.ops.reduce((sum, op) => sum + (isMatch(op.name, wanted) ? op.count : 0), 0);
    const entries = stage.entries.length > 1 ? stage.entries.filter(({ title }) => isMatch(title, wanted)).length : 0;
    const total = passes + ops + entries;
    if (total > 0) {
      found.set(stage.stage, { passes, ops, total });
    }
  }
  return found;
}

export function summaryOf(found: Map<string, Matches>, wanted: string): string {
  if (wanted.trim() === "") {
    return "";
  }
  const total = [...found.values()].reduce((sum, { total: mine }) => sum + mine, 0);
  return total === 0 ? "nothing found" : `${units.count(total)} in ${units.count(found.size, "stage")}`;
}
