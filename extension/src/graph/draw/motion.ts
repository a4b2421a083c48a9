/** From one scene to the next in a moment, so that the eye can follow what opened, closed and moved. */

import { ease, isCalm, mix, type Place } from "./camera";
import type { Box, Scene } from "../layout/scene";

const MS = 200;
/** Scenes with more boxes than this change at once. */
const MOST = 1500;

/** Calls back with each scene on the way and, last, with the new one. Returns what stops it. */
export function transition(
  before: Scene | undefined,
  after: Scene,
  show: (scene: Scene, t: number) => void,
): () => void {
  if (before === undefined || isCalm() || after.byItem.size > MOST) {
    show(after, 1);
    return () => undefined;
  }
  const begun = performance.now();
  let frame = 0;
  const step = (now: number): void => {
    const t = Math.min(Math.max((now - begun) / MS, 0), 1);
    show(t === 1 ? after : between(before, after, ease(t)), ease(t));
    if (t < 1) {
      frame = requestAnimationFrame(step);
    }
  };
  step(begun);
  return () => cancelAnimationFrame(frame);
}

function between(before: Scene, after: Scene, t: number): Scene {
  const byItem = new Map<number, Box>();
  const blend = (box: Box, parent: Box | undefined, origin: Place): Box => {
    const from = before.byItem.get(box.item) ?? { x: origin.x, y: origin.y, width: box.width, height: box.height };
    const rect = {
      x: mix(from.x, box.x, t),
      y: mix(from.y, box.y, t),
      width: mix(from.width, box.width, t),
      height: mix(from.height, box.height, t),
    };
    const stands = box.x === from.x && box.y === from.y && before.byItem.get(box.item)?.isOpen === box.isOpen;
    const made: Box = { ...box, ...rect, parent, children: [], wires: [] };
    byItem.set(box.item, made);
    made.children = box.children.map((child) => blend(child, made, rect));
    const rests = made.children.every(
      (child, at) => child.x === box.children[at]?.x && child.y === box.children[at]?.y,
    );
    made.wires = stands && rests ? box.wires : [];
    return made;
  };
  const root = blend(after.root, undefined, after.root);
  return { root, byItem, width: after.width, height: after.height };
}
