/** Graphviz, compiled to WebAssembly, in a thread of its own. One graph in, one SVG out. */

import { instance } from "@viz-js/viz";

export interface LayoutJob {
  dot: string;
  nodes: number;
}

export type LayoutResult = { svg: string } | { error: string };

/** From this many nodes on, straight edges and fewer rounds: minutes become seconds. */
const LARGE = 600;

/**
 * Graphviz has the widths of few faces and takes Times for all others. The text is drawn in the editor's own font
 * (graph.css), which is monospaced, so it is measured as one: otherwise it would run out of its boxes.
 */
const MEASURED_FONT = "Courier";
const FONT = /\bfontname=(?:"[^"]*"|\w+)/g;

const post = self as unknown as { postMessage(result: LayoutResult): void };

self.onmessage = async ({ data }: MessageEvent<LayoutJob>) => {
  try {
    const viz = await instance();
    const svg = viz.renderString(data.dot.replace(FONT, `fontname="${MEASURED_FONT}"`), {
      format: "svg",
      engine: "dot",
      // Defaults only: what the DOT says itself wins.
      nodeAttributes: {
        fontname: MEASURED_FONT,
        fontsize: 11,
        shape: "box",
        style: "rounded",
        height: 0.3,
        margin: "0.12,0.05",
      },
      edgeAttributes: { fontname: MEASURED_FONT, fontsize: 9, arrowsize: 0.6 },
      graphAttributes:
        data.nodes >= LARGE
          ? { fontname: MEASURED_FONT, nslimit: 2, nslimit1: 2, mclimit: 0.5, splines: "line", ranksep: 0.3 }
          : { fontname: MEASURED_FONT, ranksep: 0.3, nodesep: 0.2 },
    });
    post.postMessage({ svg });
  } catch (error) {
    post.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
};
