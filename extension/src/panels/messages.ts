/** What a panel and its host say to each other. The host is the extension, or the page of `irscope view`. */

import type { Place } from "../protocol";
import { TABS, type Tab } from "./registry";

export { TABS, type Tab };

/** What a panel shows. Kept in the panel's state, so that one that was restored can be filled again. */
export interface Subject {
  run: string;
  compile?: string;
  stage?: string;
  title: string;
  /** The newest run of the deep lane, where `run` is of the fast one: it has the stages, times and memory plans. */
  deep?: string;
}

/** Lines of one document. */
export interface Lines {
  uri: string;
  lines: number[];
}

/** The panels that there are; each has a script and a style sheet of its name in extension/dist. */
export type PanelName = "graph" | Tab;

export type ToPanel =
  | { type: "subject"; subject: Subject }
  /** No run has to do with what is open; `message` says what to do. */
  | { type: "nothing"; message: string }
  /** The dock shows a tab; with `focus` it takes the keyboard, with `pin` it shows that and no longer follows the editor. */
  | { type: "tab"; tab: Tab; focus: boolean; pin?: Subject }
  | { type: "answer"; id: number; result: unknown }
  | { type: "failed"; id: number; message: string }
  /** The store has something new about a run. */
  | { type: "changed"; run: string; running: boolean }
  /** A graph selects the nodes of these lines of its stage, opens what they are in, and shows them. */
  | { type: "land"; at: Lines }
  /** The cursor of a text editor came to another line. */
  | { type: "cursor"; place: Place };

export type FromPanel =
  | { type: "ready" }
  | { type: "request"; id: number; method: string; params: object }
  /** With `preserveFocus` the panel keeps the keyboard. */
  | { type: "open"; place: Place; preserveFocus?: boolean }
  | { type: "show"; panel: PanelName; subject: Subject }
  /** Runs the file in the editor; without an editor nothing happens. */
  | { type: "run" }
  /** Lets the user choose pipelines and compares them on the file in the editor; without an editor nothing happens. */
  | { type: "comparePipelines" }
  /** Measures the file in the editor, also its memory if that is asked for; without an editor nothing happens. */
  | { type: "profile"; memory?: boolean }
  | { type: "compare"; left: string; right: string; title: string }
  /** Asks where to, and writes a text there. */
  | { type: "save"; name: string; text: string }
  | { type: "copy"; text: string }
  | { type: "title"; title: string }
  /** Something is on the screen: for tests and for the log. */
  | { type: "drawn"; what: string; milliseconds: number }
  | { type: "problem"; message: string };
