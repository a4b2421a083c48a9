/**
 * The page's side of the worker: asks for one chunk at a time, and ends a worker that does not answer, since one regular
 * expression on one hostile line can take longer than anybody lives.
 */

// The worker's source: scripts/lib/grammarModules.mjs makes it a string.
import workerSource from "grammar-worker-source";
import type { FromWorker, Spans, TextToColour, ToWorker } from "./messages";

/** Far more than a chunk takes, so that a busy machine is not taken for a hostile text. */
const ANSWER_MS = 5_000;
/** A text that goes over the limit so many times stays plain from there on. */
const MOST_SKIPPED = 3;

interface Chunk {
  text: TokenizedText;
  chunk: number;
}

let worker: Worker | undefined;
let asked: (Chunk & { timer: number }) | undefined;
let texts = 0;
const queue: Chunk[] = [];
/** The texts that the worker has. */
const opened = new Map<number, TokenizedText>();

/** A text whose tokens are found in the worker. */
export class TokenizedText {
  readonly id = (texts += 1);
  private readonly skipped: number[] = [];

  /** @param onSpans gets the spans of a chunk; empty if it took too long */
  constructor(
    private readonly language: string,
    private readonly text: string,
    readonly onSpans: (chunk: number, spans: Spans) => void,
  ) {}

  /** Asks for chunks; what was asked for before and has not begun is forgotten. */
  want(chunks: readonly number[]): void {
    this.forget();
    if (this.skipped.length < MOST_SKIPPED) {
      queue.push(...chunks.filter((chunk) => !this.isAsked(chunk)).map((chunk) => ({ text: this, chunk })));
      askNext();
    }
  }

  skip(chunk: number): void {
    this.skipped.push(chunk);
    this.onSpans(chunk, new Uint32Array());
    if (this.skipped.length === MOST_SKIPPED) {
      this.forget();
    }
  }

  close(): void {
    this.forget();
    if (opened.delete(this.id)) {
      send({ type: "close", id: this.id });
    }
  }

  get toColour(): TextToColour {
    return { language: this.language, text: this.text, skipped: this.skipped };
  }

  private isAsked(chunk: number): boolean {
    return asked?.text === this && asked.chunk === chunk;
  }

  private forget(): void {
    const others = queue.filter(({ text }) => text !== this);
    queue.splice(0, queue.length, ...others);
  }
}

function askNext(): void {
  const next = asked === undefined ? queue.shift() : undefined;
  if (next === undefined) {
    return;
  }
  const { text, chunk } = next;
  if (!opened.has(text.id)) {
    opened.set(text.id, text);
    send({ type: "open", id: text.id, ...text.toColour });
  }
  asked = { text, chunk, timer: window.setTimeout(giveUp, ANSWER_MS) };
  send({ type: "chunk", id: text.id, chunk });
}

function send(message: ToWorker): void {
  worker ??= start();
  worker.postMessage(message);
}

function start(): Worker {
  const url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
  const started = new Worker(url);
  started.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
    const { text, chunk } = settle();
    // A text that was closed in the meantime needs nothing.
    if (text !== undefined && opened.has(text.id) && text.id === data.id && chunk === data.chunk) {
      text.onSpans(data.chunk, data.spans);
    }
    askNext();
  });
  started.addEventListener("error", giveUp);
  URL.revokeObjectURL(url);
  return started;
}

function settle(): Partial<Chunk> {
  const { text, chunk, timer } = asked ?? {};
  window.clearTimeout(timer);
  asked = undefined;
  return { ...(text && { text }), ...(chunk !== undefined && { chunk }) };
}

/** The chunk stays plain, and a new worker goes on with the next. */
function giveUp(): void {
  worker?.terminate();
  worker = undefined;
  const { text, chunk } = settle();
  const isOpen = text !== undefined && opened.has(text.id);
  opened.clear();
  if (isOpen && chunk !== undefined) {
    text.skip(chunk);
  }
  askNext();
}
