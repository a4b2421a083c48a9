/** Which run a tab shows. */

import type { RunItem } from "../../protocol";
import { rankOf } from "../../runGroups";
import * as units from "../../units";
import type { Subject, Tab } from "../messages";
import { REGISTRY } from "../registry";
import { fileName } from "../text";

export function runOf(tab: Tab, { run, deep }: Subject): string {
  return REGISTRY[tab].isDeep ? (deep ?? run) : run;
}

/** A run in the list of the dock. Ranks of a job differ in nothing else. */
export function runText(run: RunItem): string {
  const way = run.lane === "deep" ? run.pipeline : run.lane; // a file may have gone through several pipelines
  const parts = [fileName(run.script), ...rankOf(run), way, units.clock(run.started)];
  return [...parts, run.outcome === null ? "running" : units.duration(run.seconds)].join(" · ");
}
