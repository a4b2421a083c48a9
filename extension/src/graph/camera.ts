/** Pan and zoom: which part of the graph the canvas shows. */

export interface View {
  /** Left top corner in the graph's units. */
  x: number;
  y: number;
  /** Pixels for one unit. */
  scale: number;
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const SMALLEST_SCALE = 0.02;
const LARGEST_SCALE = 6;
/** At the start, text is never smaller than it can be read; a graph that does not fit begins at its top. */
const READABLE_SCALE = 1;

export class Camera {
  private current: View = { x: 0, y: 0, scale: 1 };

  constructor(
    private readonly canvas: HTMLElement,
    private readonly svg: SVGSVGElement,
    private readonly box: Box,
    private readonly onChange: (view: View) => void,
  ) {
    this.listen();
    new ResizeObserver(() => this.apply()).observe(canvas);
  }

  get view(): View {
    return this.current;
  }

  set(view: View): void {
    this.current = { ...view, scale: Math.min(Math.max(view.scale, SMALLEST_SCALE), LARGEST_SCALE) };
    this.apply();
    this.onChange(this.current);
  }

  /** The whole graph. */
  fit(): void {
    const scale = Math.min(this.fitting(), 1.5);
    this.set({
      scale,
      x: this.box.x - (this.canvas.clientWidth / scale - this.box.width) / 2,
      y: this.box.y - (this.canvas.clientHeight / scale - this.box.height) / 2,
    });
  }

  /** The whole graph where its text can be read then, else its top, around `around`. */
  start(around: { x: number; y: number } | undefined): void {
    this.fit();
    if (this.current.scale < READABLE_SCALE) {
      const x = (around?.x ?? this.box.x + this.box.width / 2) - this.canvas.clientWidth / READABLE_SCALE / 2;
      const y = (around?.y ?? this.box.y) - 40;
      this.set({ x, y: Math.max(y, this.box.y - 20), scale: READABLE_SCALE });
    }
  }

  /** Zooms about a point of the canvas in pixels; its middle when none is given. */
  zoom(factor: number, at?: { x: number; y: number }): void {
    const { x, y, scale } = this.current;
    const point = at ?? { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 };
    const next = Math.min(Math.max(scale * factor, SMALLEST_SCALE), LARGEST_SCALE);
    this.set({ x: x + point.x / scale - point.x / next, y: y + point.y / scale - point.y / next, scale: next });
  }

  pan(pixelsX: number, pixelsY: number): void {
    const { x, y, scale } = this.current;
    this.set({ x: x + pixelsX / scale, y: y + pixelsY / scale, scale });
  }

  /** Moves no more than needed to have the place in view. */
  reveal(place: Box): void {
    let { x, y, scale } = this.current;
    if (scale < READABLE_SCALE / 2) {
      scale = READABLE_SCALE;
    }
    const [width, height] = [this.canvas.clientWidth / scale, this.canvas.clientHeight / scale];
    const [left, top] = [place.x - place.width / 2, place.y - place.height / 2];
    const margin = 30 / scale;
    const visible =
      scale === this.current.scale &&
      left >= x + margin &&
      top >= y + margin &&
      left + place.width <= x + width - margin &&
      top + place.height <= y + height - margin;
    if (!visible) {
      [x, y] = [place.x - width / 2, place.y - height / 2];
      this.set({ x, y, scale });
    }
  }

  private fitting(): number {
    return Math.min(this.canvas.clientWidth / (this.box.width + 20), this.canvas.clientHeight / (this.box.height + 20));
  }

  private apply(): void {
    const { x, y, scale } = this.current;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.svg.setAttribute("viewBox", `${x} ${y} ${width / scale} ${height / scale}`);
  }

  private listen(): void {
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (event.shiftKey) {
          this.pan(event.deltaY + event.deltaX, 0);
          return;
        }
        const rect = this.canvas.getBoundingClientRect();
        const at = { x: event.clientX - rect.left, y: event.clientY - rect.top };
        this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), at);
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
          this.canvas.setPointerCapture(event.pointerId); // From here on it is not a click on a node.
        }
        if (dragging) {
          this.set({ ...before, x: before.x - dx / before.scale, y: before.y - dy / before.scale });
        }
      };
      const end = (): void => {
        this.canvas.classList.remove("dragging");
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
