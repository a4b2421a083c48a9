/** What is saved: the picture as SVG, the graph as DOT. */

import { post } from "../../panels/bridge";
import type { Colouring } from "../draw/colours";
import type { Forest } from "../model/clusters";
import { shownAsDot, wholeAsDot } from "../draw/dot";
import type { Labels } from "../draw/labels";
import type { Model } from "../model/model";
import { Painter } from "../draw/painter";
import { SvgPen } from "../draw/pens";
import type { Theme } from "../draw/theme";
import type { GraphView } from "./view";

export interface Shown {
  model: Model;
  forest: Forest;
  view: GraphView;
  theme: Theme;
  labels: Labels;
  colours: Colouring;
}

/** All that is open, not only what is in view. */
export function saveSvg({ model, view, theme, labels, colours }: Shown): void {
  const { scene, marks } = view;
  if (scene !== undefined) {
    const { title } = model.graph;
    const pen = new SvgPen();
    new Painter(theme, labels, colours).draw(pen, scene, { ...marks, far: [], selected: undefined }, 1);
    post({
      type: "save",
      name: `${fileName(title)}.svg`,
      text: pen.finish(scene.width, scene.height, theme.background, title),
    });
  }
}

export function saveDot({ model, forest, view, labels }: Shown, which: "shown" | "whole"): void {
  const { scene } = view;
  if (scene !== undefined) {
    const { title } = model.graph;
    const text = which === "whole" ? wholeAsDot(model, forest, title) : shownAsDot(scene, labels, title);
    post({ type: "save", name: `${fileName(title)}.dot`, text });
  }
}

function fileName(title: string): string {
  return title.replace(/[^\w.-]+/g, "-").replace(/^-|-$/g, "");
}
