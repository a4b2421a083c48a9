/** The keyboard on the picture. */

import { edgeOf, into, neighbour, type Direction } from "./navigation";
import type { GraphPanel } from "./panel";
import type { Box } from "../layout/scene";

const PAN_STEP_PIXELS = 60;
const ZOOM_STEP = 1.3;
const DIRECTIONS: Record<string, Direction> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

/** Says whether the key means something here. */
export function handleKey(panel: GraphPanel, event: KeyboardEvent): boolean {
  const { camera, scene } = panel.view;
  if (scene === undefined) {
    return false;
  }
  const box = panel.selectedBox;
  const go = (to: Box | undefined): void => {
    if (to !== undefined && to !== scene.root) {
      panel.select(to.item);
    }
  };
  const direction = DIRECTIONS[event.key];
  if (direction !== undefined && event.shiftKey) {
    const [x, y] = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[direction] as [number, number];
    camera.pan(x * PAN_STEP_PIXELS, y * PAN_STEP_PIXELS);
  } else if (direction !== undefined && (event.altKey || event.ctrlKey || event.metaKey)) {
    if (direction === "up") {
      go(box?.parent);
    } else if (direction === "down" && box?.cluster !== undefined) {
      void (box.isOpen ? Promise.resolve() : panel.toggle(box.item)).then(() => {
        const now = panel.view.scene?.byItem.get(box.item);
        if (now?.isOpen === true) {
          go(into(now));
        }
      });
    } else {
      return false;
    }
  } else if (direction !== undefined) {
    go(box === undefined ? into(scene.root) : neighbour(box, direction));
  } else if (event.key === "Enter" && box !== undefined) {
    if (event.altKey && box.cluster === undefined) {
      panel.ways.goToStage(box.item);
    } else {
      panel.activate();
    }
  } else if (event.key === " " && box?.cluster !== undefined) {
    panel.activate();
  } else if (event.key === "Escape" && box !== undefined) {
    if (box.parent === scene.root) {
      panel.select(undefined);
    } else {
      go(box.parent);
    }
  } else if (event.key === "Home" || event.key === "End") {
    go(edgeOf(box ?? scene.root, event.key === "Home" ? "first" : "last"));
  } else if (event.key === "*" && box?.cluster !== undefined) {
    void panel.expandBelow(box.item);
  } else if ((event.key === "+" || event.key === "=") && box?.cluster !== undefined && !box.isOpen) {
    void panel.toggle(box.item);
  } else if (event.key === "-" && box?.isOpen === true) {
    void panel.toggle(box.item);
  } else if (event.key === "+" || event.key === "=" || event.key === "PageUp") {
    camera.zoom(ZOOM_STEP);
  } else if (event.key === "-" || event.key === "PageDown") {
    camera.zoom(1 / ZOOM_STEP);
  } else if (event.key === "0") {
    camera.glide(camera.fitting());
  } else if (event.key === "k" || event.key === "K") {
    panel.showKernel();
  } else {
    return false;
  }
  return true;
}
