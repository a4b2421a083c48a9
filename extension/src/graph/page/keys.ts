/** The keyboard on the picture. */

import { edgeOf, into, neighbour, type Direction } from "./navigation";
import type { GraphPanel } from "./panel";
import type { Box, Scene } from "../layout/scene";

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
  const { scene } = panel.view;
  if (scene === undefined) {
    return false;
  }
  const box = panel.selectedBox;
  const direction = DIRECTIONS[event.key];
  if (direction !== undefined) {
    return onArrow(panel, event, scene, box, direction);
  }
  return (box !== undefined && onBox(panel, event, scene, box)) || onPicture(panel, event, scene, box);
}

function go(panel: GraphPanel, scene: Scene, to: Box | undefined): void {
  if (to !== undefined && to !== scene.root) {
    panel.select(to.item);
  }
}

/** With Shift the picture moves, with Alt or Ctrl the selection leaves or enters a cluster, else it moves. */
function onArrow(
  panel: GraphPanel,
  event: KeyboardEvent,
  scene: Scene,
  box: Box | undefined,
  direction: Direction,
): boolean {
  if (event.shiftKey) {
    const [x, y] = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[direction] as [number, number];
    panel.view.camera.pan(x * PAN_STEP_PIXELS, y * PAN_STEP_PIXELS);
  } else if (!event.altKey && !event.ctrlKey && !event.metaKey) {
    go(panel, scene, box === undefined ? into(scene.root) : neighbour(box, direction));
  } else if (direction === "up") {
    go(panel, scene, box?.parent);
  } else if (direction === "down" && box?.cluster !== undefined) {
    void (box.isOpen ? Promise.resolve() : panel.toggle(box.item)).then(() => {
      const now = panel.view.scene?.byItem.get(box.item);
      if (now?.isOpen === true) {
        go(panel, scene, into(now));
      }
    });
  } else {
    return false;
  }
  return true;
}

/** What a key does to the box that is selected. */
function onBox(panel: GraphPanel, event: KeyboardEvent, scene: Scene, box: Box): boolean {
  const isCluster = box.cluster !== undefined;
  if (event.key === "Enter" && event.altKey && !isCluster) {
    panel.ways.goToStage(box.item);
  } else if (event.key === "Enter" || (event.key === " " && isCluster)) {
    panel.activate();
  } else if (event.key === "Escape" && box.parent === scene.root) {
    panel.select(undefined);
  } else if (event.key === "Escape") {
    go(panel, scene, box.parent);
  } else if (event.key === "*" && isCluster) {
    void panel.expandBelow(box.item);
  } else if (isCluster && (box.isOpen ? event.key === "-" : event.key === "+" || event.key === "=")) {
    void panel.toggle(box.item);
  } else {
    return false;
  }
  return true;
}

/** What a key does to the picture as a whole. */
function onPicture(panel: GraphPanel, event: KeyboardEvent, scene: Scene, box: Box | undefined): boolean {
  const { camera } = panel.view;
  if (event.key === "Home" || event.key === "End") {
    go(panel, scene, edgeOf(box ?? scene.root, event.key === "Home" ? "first" : "last"));
  } else if (event.key === "+" || event.key === "=" || event.key === "PageUp") {
    camera.zoom(ZOOM_STEP);
  } else if (event.key === "-" || event.key === "PageDown") {
    camera.zoom(1 / ZOOM_STEP);
  } else if (event.key === "0") {
    camera.fit();
  } else if (event.key === "k" || event.key === "K") {
    panel.showKernel();
  } else {
    return false;
  }
  return true;
}
