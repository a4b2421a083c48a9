/** What the extension and the graph panel say to each other. */

import type { Graph } from "../protocol";

/** Names the stage that a panel shows; kept in the webview's state so that a restored panel can be filled again. */
export interface StageRef {
  run: string;
  stage: string;
  title: string;
}

export type ToPanel =
  { type: "stage"; stage: StageRef } | { type: "graph"; graph: Graph } | { type: "failed"; message: string };

export type FromPanel =
  | { type: "ready" }
  | { type: "retry" }
  | { type: "openSource"; node: string }
  | { type: "openStage"; node: string }
  /** The picture is on the screen: for tests and for the log. */
  | { type: "drawn"; nodes: number; milliseconds: number }
  | { type: "problem"; message: string };
