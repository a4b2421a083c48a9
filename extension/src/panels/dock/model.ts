/** Which run a tab shows, and whether it is an older one. */

import * as units from "../../units";
import type { RunItem } from "../../protocol";
import type { Subject, Tab } from "../messages";
import { REGISTRY } from "../registry";

export function runOf(tab: Tab, { run, deep }: Subject): string {
  return REGISTRY[tab].isDeep ? (deep ?? run) : run;
}

/**
 * What is said where a tab shows another run than the newest of its script; empty for the newest.
 * @param runs the newest first
 */
export function ageText(tab: Tab, subject: Subject, runs: RunItem[]): string {
  const shown = runs.find(({ run }) => run === runOf(tab, subject));
  const newest = runs.find(({ script, outcome }) => script === shown?.script && outcome !== null);
  if (shown === undefined || newest === undefined || newest.started <= shown.started) {
    return "";
  }
  return `Older run: ${shown.lane}, ${units.clock(shown.started)}. Newest: ${newest.lane}, ${units.clock(newest.started)}.`;
}
