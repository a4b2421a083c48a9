/** Starts the layout in a worker, so that it can be cancelled and the panel stays alive however long it takes. */

// The worker's bundled source: scripts/build.mjs makes it a string.
import workerSource from "graph-worker-source";
import type { LayoutJob, LayoutResult } from "./layoutWorker";

export interface Layout {
  svg: Promise<string>;
  cancel: () => void;
}

export class LayoutCancelled extends Error {}

export function startLayout(job: LayoutJob): Layout {
  const url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
  const worker = new Worker(url);
  let cancel: () => void = () => undefined;
  const svg = new Promise<string>((resolve, reject) => {
    cancel = () => reject(new LayoutCancelled("The layout was cancelled."));
    worker.onmessage = ({ data }: MessageEvent<LayoutResult>) =>
      "svg" in data ? resolve(data.svg) : reject(new Error(data.error));
    worker.onerror = (event) => reject(new Error(event.message || "Graphviz could not be started."));
    worker.postMessage(job);
  }).finally(() => {
    worker.terminate();
    URL.revokeObjectURL(url);
  });
  return { svg, cancel: () => cancel() };
}
