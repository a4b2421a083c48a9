/** The whole picture beside the graph, with the part that is in view; a click or a drag in it goes there. */

import type { Camera } from "./camera";
import type { Box, Scene } from "../layout/scene";

/** At most and at least, in pixels; what shape it has between follows the picture's. */
const WIDEST = 168;
const TALLEST = 240;
const LEAST = 64;
/** It takes at most this much of the panel's height. */
const SHARE = 0.4;
const SHARE_OF_WIDTH = 0.2;
const MARGIN = 8;
/** A small picture has a small map. */
const LARGEST_SCALE = 0.16;

export class Minimap {
  private readonly context: CanvasRenderingContext2D;
  private picture: HTMLCanvasElement | undefined;
  private scale = 1;
  private offset = { x: 0, y: 0 };
  private size = { width: WIDEST, height: TALLEST };
  private readonly ratio = window.devicePixelRatio;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly camera: Camera,
  ) {
    this.context = canvas.getContext("2d") as CanvasRenderingContext2D;
    const go = (event: PointerEvent): void => {
      const rect = canvas.getBoundingClientRect();
      const x = (event.clientX - rect.left - this.offset.x) / this.scale;
      const y = (event.clientY - rect.top - this.offset.y) / this.scale;
      const { scale } = camera.view;
      camera.set({ x: x - camera.width / scale / 2, y: y - camera.height / scale / 2, scale });
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons === 1) {
        go(event);
      }
    });
  }

  /** Redraws the scene; needed only when it or its colours have changed. */
  show(scene: Scene, fill: (box: Box) => string, border: string): void {
    const tallest = Math.min(TALLEST, Math.max(this.camera.height * SHARE, LEAST));
    const widest = Math.min(WIDEST, Math.max(document.documentElement.clientWidth * SHARE_OF_WIDTH, LEAST));
    this.scale = Math.min((widest - MARGIN) / scene.width, (tallest - MARGIN) / scene.height, LARGEST_SCALE);
    const width = Math.max(Math.round(scene.width * this.scale) + MARGIN, LEAST);
    const height = Math.max(Math.round(scene.height * this.scale) + MARGIN, LEAST);
    this.size = { width, height };
    this.offset = { x: (width - scene.width * this.scale) / 2, y: (height - scene.height * this.scale) / 2 };
    this.canvas.width = width * this.ratio;
    this.canvas.height = height * this.ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.picture = document.createElement("canvas");
    this.picture.width = this.canvas.width;
    this.picture.height = this.canvas.height;
    const context = this.picture.getContext("2d") as CanvasRenderingContext2D;
    context.setTransform(
      this.scale * this.ratio,
      0,
      0,
      this.scale * this.ratio,
      this.offset.x * this.ratio,
      this.offset.y * this.ratio,
    );
    context.lineWidth = 0.6 / this.scale;
    context.strokeStyle = border;
    const least = 0.4 / this.scale;
    const draw = (box: Box): void => {
      if (box.isOpen) {
        context.strokeRect(box.x, box.y, box.width, box.height);
        box.children.forEach(draw);
      } else {
        context.fillStyle = fill(box);
        context.fillRect(box.x, box.y, Math.max(box.width, least), Math.max(box.height, least));
      }
    };
    scene.root.children.forEach(draw);
  }

  /** Each frame: the picture, and the frame around what is in view. Hidden where all is in view. */
  frame(scene: Scene, focus: string): void {
    const { x, y, width, height } = this.camera.seen;
    const hidden = x <= 0 && y <= 0 && x + width >= scene.width && y + height >= scene.height;
    if (this.canvas.hidden !== hidden) {
      this.canvas.hidden = hidden;
    }
    if (hidden || this.picture === undefined) {
      return;
    }
    const { context, ratio } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = focus;
    context.lineWidth = 1.5;
    const left = Math.max(this.offset.x + x * this.scale, 1);
    const top = Math.max(this.offset.y + y * this.scale, 1);
    const right = Math.min(this.offset.x + (x + width) * this.scale, this.size.width - 1);
    const bottom = Math.min(this.offset.y + (y + height) * this.scale, this.size.height - 1);
    context.strokeRect(left, top, Math.max(right - left, 4), Math.max(bottom - top, 4));
  }
}
