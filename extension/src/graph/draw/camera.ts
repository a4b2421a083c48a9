/** Pan and zoom: which part of the picture the canvas shows. */

import type { View } from "./painter";

export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

const SMALLEST_SCALE = 0.001;
const LARGEST_SCALE = 5;
/** How much smaller than where all of it is in view the picture can be made. */
const FARTHEST = 2;
const READABLE_SCALE = 0.7;
/** At the start all is in view; a graph of which nothing could be read then begins at its top. */
const LEAST_AT_START = 0.3;
const MOVE_MS = 220;

export const isCalm = (): boolean => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Camera {
  private current: View = { x: 0, y: 0, scale: 1 };
  private moving = 0;
  /** What is shown until the user moves it, whatever room there is: all, or what is shown at the start. */
  private kept: "whole" | "start" | undefined;

  constructor(
    private readonly canvas: HTMLElement,
    private readonly picture: () => { width: number; height: number },
    private readonly onChange: (view: View) => void,
  ) {
    this.listen();
  }

  get view(): View {
    return this.current;
  }

  get width(): number {
    return this.canvas.clientWidth;
  }

  get height(): number {
    return this.canvas.clientHeight;
  }

  /** What is in view, in the graph's units. */
  get seen(): Place {
    const { x, y, scale } = this.current;
    return { x, y, width: this.width / scale, height: this.height / scale };
  }

  set(view: View): void {
    cancelAnimationFrame(this.moving);
    this.kept = undefined;
    this.apply(view);
  }

  private apply(view: View): void {
    this.current = { ...view, scale: Math.min(Math.max(view.scale, SMALLEST_SCALE), LARGEST_SCALE) };
    this.onChange(this.current);
  }

  /** Goes there in a moment, so that the eye can follow. */
  glide(to: View): void {
    cancelAnimationFrame(this.moving);
    this.kept = undefined;
    if (isCalm()) {
      this.apply(to);
      return;
    }
    const from = this.current;
    const begun = performance.now();
    const step = (now: number): void => {
      const t = ease(Math.min(Math.max((now - begun) / MOVE_MS, 0), 1));
      const scale = from.scale * (to.scale / from.scale) ** t;
      // The middle of the view goes along a straight line.
      const [w, h] = [this.width / 2, this.height / 2];
      const x = mix(from.x + w / from.scale, to.x + w / to.scale, t) - w / scale;
      const y = mix(from.y + h / from.scale, to.y + h / to.scale, t) - h / scale;
      this.apply(t === 1 ? to : { x, y, scale });
      if (t < 1) {
        this.moving = requestAnimationFrame(step);
      }
    };
    this.moving = requestAnimationFrame(step);
  }

  /** Where it is to be when the page is made again. */
  get rest(): View | "whole" | undefined {
    return this.kept === "start" ? undefined : (this.kept ?? this.current);
  }

  /** Goes back to what `rest` said. */
  restore(rest: View | "whole" | undefined): void {
    if (rest === undefined) {
      this.start();
    } else {
      this.set(rest === "whole" ? this.fitting() : rest);
      this.kept = rest === "whole" ? rest : undefined;
    }
  }

  resized(): void {
    if (this.kept !== undefined && this.width > 0) {
      this.restore(this.rest);
    }
  }

  /** Shows the whole picture. */
  fit(): void {
    this.glide(this.fitting());
    this.kept = "whole";
  }

  private fitting(): View {
    const { width, height } = this.picture();
    const scale = Math.min(this.width / (width + 40), this.height / (height + 40), 1.25);
    return {
      scale,
      x: width / 2 - this.width / scale / 2,
      y: height / 2 - this.height / scale / 2,
    };
  }

  /** The whole picture where its names can be read then, else its top. */
  start(): void {
    const view = this.fitting();
    const x = this.picture().width / 2 - this.width / READABLE_SCALE / 2;
    this.set(view.scale >= LEAST_AT_START ? view : { x, y: -16, scale: READABLE_SCALE });
    this.kept = "start";
  }

  /** Zooms about a point of the canvas in pixels; its middle when none is given. */
  zoom(factor: number, at?: { x: number; y: number }): void {
    const { x, y, scale } = this.current;
    const point = at ?? { x: this.width / 2, y: this.height / 2 };
    // Farther away than all of it there is nothing more to see, and no name could be read.
    const least = Math.min(scale, this.fitting().scale / FARTHEST);
    const next = Math.min(Math.max(scale * factor, least), LARGEST_SCALE);
    this.set({ x: x + point.x / scale - point.x / next, y: y + point.y / scale - point.y / next, scale: next });
  }

  pan(pixelsX: number, pixelsY: number): void {
    const { x, y, scale } = this.current;
    this.set({ x: x + pixelsX / scale, y: y + pixelsY / scale, scale });
  }

  shows(place: Place): boolean {
    const { x, y, width, height } = this.seen;
    const margin = 24 / this.current.scale;
    return (
      place.x >= x + margin &&
      place.y >= y + margin &&
      Math.min(place.x + place.width, place.x + width / 2) <= x + width - margin &&
      Math.min(place.y + place.height, place.y + height / 2) <= y + height - margin
    );
  }

  /** Moves no more than needed to have the place in view, large enough to be read. */
  reveal(place: Place): void {
    const scale = this.current.scale < READABLE_SCALE / 2 ? 1 : this.current.scale;
    if (scale === this.current.scale && this.shows(place)) {
      return;
    }
    const [width, height] = [this.width / scale, this.height / scale];
    const x = place.width > width ? place.x - 20 / scale : place.x + place.width / 2 - width / 2;
    const y = place.height > height ? place.y - 20 / scale : place.y + place.height / 2 - height / 2;
    this.glide({ x, y, scale });
  }

  private listen(): void {
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        if (event.shiftKey) {
          this.pan((event.deltaY + event.deltaX) * unit, 0);
          return;
        }
        const rect = this.canvas.getBoundingClientRect();
        const at = { x: event.clientX - rect.left, y: event.clientY - rect.top };
        this.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0015)), at);
      },
      { passive: false },
    );
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) {
        return;
      }
      const [startX, startY] = [event.clientX, event.clientY];
      const before = this.current;
      let dragging = false;
      const move = (moved: PointerEvent): void => {
        const [dx, dy] = [moved.clientX - startX, moved.clientY - startY];
        if (!dragging && Math.hypot(dx, dy) > 4) {
          dragging = true;
          this.canvas.classList.add("dragging");
          this.canvas.setPointerCapture(event.pointerId);
        }
        if (dragging) {
          this.set({ ...before, x: before.x - dx / before.scale, y: before.y - dy / before.scale });
        }
      };
      const end = (): void => {
        // A click that ends a drag comes right after this, and is none.
        setTimeout(() => this.canvas.classList.remove("dragging"));
        this.canvas.removeEventListener("pointermove", move);
        this.canvas.removeEventListener("pointerup", end);
        this.canvas.removeEventListener("pointercancel", end);
      };
      this.canvas.addEventListener("pointermove", move);
      this.canvas.addEventListener("pointerup", end);
      this.canvas.addEventListener("pointercancel", end);
    });
  }
}

export function ease(t: number): number {
  return t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2;
}

export function mix(from: number, to: number, t: number): number {
  return from + (to - from) * t;
}
