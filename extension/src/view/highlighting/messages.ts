/** What the page and its worker say to each other. */

/** The worker is asked for so many lines at a time. */
export const CHUNK_LINES = 100;

/** From, to and the number of the class, for one token after the other; places count from the start of the chunk. */
export type Spans = Uint32Array<ArrayBuffer>;

export interface TextToColour {
  language: string;
  text: string;
  /** Chunks that took too long. They stay plain, and the chunk below each starts without a state. */
  skipped: readonly number[];
}

/** `id` is the number of a text. */
export type ToWorker =
  | ({ type: "open"; id: number } & TextToColour)
  | { type: "close"; id: number }
  | { type: "chunk"; id: number; chunk: number };

/** The answer to `chunk`. */
export interface FromWorker {
  id: number;
  chunk: number;
  spans: Spans;
}
