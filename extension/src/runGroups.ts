/** The runs of a script that went through several pipelines, in one row of the tree of runs. */

import type { RunItem } from "./protocol";

/** What a deep run goes through if nothing else is asked for (`DEFAULT_PIPELINE` of irscope). */
const USUAL = "inductor";

/** What tells runs of one script apart: the lane, or the pipeline if it is not the usual one. */
export function wayOf({ lane, pipeline }: RunItem): string {
  return lane === "fast" || pipeline === USUAL ? lane : pipeline;
}

/** The rank of a run of a job, as the first of its facts; nothing for any other run. */
export function rankOf({ rank, world }: RunItem): string[] {
  return rank !== null && world > 0 ? [`rank ${rank} of ${world}`] : [];
}

export interface ScriptRuns {
  script: string;
  scriptUri: string;
  /** The newest run of each pipeline, and the newest one of the fast lane; newest first. */
  newest: RunItem[];
  earlier: RunItem[];
}

/** In the order of the runs; a script whose runs went through one pipeline has a row for each run. */
export function rowsOf(runs: RunItem[]): (RunItem | ScriptRuns)[] {
  const rows: (RunItem | ScriptRuns)[] = [];
  for (const run of runs) {
    const mine = runs.filter(({ script }) => script === run.script);
    if (new Set(mine.map(({ pipeline }) => pipeline)).size < 2) {
      rows.push(run);
    } else if (mine[0] === run) {
      rows.push(together(mine));
    }
  }
  return rows;
}

export function isScript(row: RunItem | ScriptRuns): row is ScriptRuns {
  return "newest" in row;
}

/** @param runs the newest first */
function together(runs: RunItem[]): ScriptRuns {
  const seen = new Set<string>();
  const newest = runs.filter(({ lane, pipeline }) => {
    const key = lane === "fast" ? "" : pipeline; // The fast lane is the same for all pipelines.
    return !seen.has(key) && seen.add(key);
  });
  const { script, scriptUri } = runs[0] as RunItem;
  return { script, scriptUri, newest, earlier: runs.filter((run) => !newest.includes(run)) };
}
