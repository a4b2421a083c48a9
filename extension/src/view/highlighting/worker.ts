/** The worker that finds tokens, so that no text can keep the page from answering. */

import type { FromWorker, ToWorker } from "./messages";
import { Tokens } from "./tokens";

const texts = new Map<number, Tokens>();

self.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "open") {
    texts.set(data.id, new Tokens(data));
  } else if (data.type === "close") {
    texts.delete(data.id);
  } else {
    const spans = texts.get(data.id)?.chunk(data.chunk) ?? new Uint32Array();
    const answer: FromWorker = { id: data.id, chunk: data.chunk, spans };
    self.postMessage(answer, { transfer: [spans.buffer] });
  }
});
