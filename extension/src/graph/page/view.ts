/** The canvas and everything on it: the picture, the minimap and the tree over it. It is redrawn after each change. */

import { Camera } from "../draw/camera";
import type { Colouring } from "../draw/colours";
import type { Labels } from "../draw/labels";
import { Minimap } from "../draw/minimap";
import { transition } from "../draw/motion";
import { Outline } from "./outline";
import type { Page } from "./page";
import { Painter, type Marks } from "../draw/painter";
import { CanvasPen } from "../draw/pens";
import type { Scene } from "../layout/scene";
import type { Theme } from "../draw/theme";

const REST_MS = 120;

export class GraphView {
  readonly camera: Camera;
  scene: Scene | undefined;
  marks: Marks = { selected: undefined, linked: new Set(), matches: undefined, current: undefined, far: [] };
  private shown: Scene | undefined;
  private painter: Painter | undefined;
  private readonly context: CanvasRenderingContext2D;
  private readonly pen: CanvasPen;
  private readonly minimap: Minimap;
  private readonly outline: Outline;
  private frame = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private stop: () => void = () => undefined;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly page: Page,
    private readonly onRest: (view: Camera["rest"]) => void,
  ) {
    this.context = page.picture.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    page.picture.style.visibility = "hidden"; // Without alpha it is black until something is drawn.
    this.pen = new CanvasPen(this.context);
    this.camera = new Camera(
      page.canvas,
      () => this.scene ?? { width: 1, height: 1 },
      () => this.draw(),
    );
    this.minimap = new Minimap(page.minimap, this.camera);
    this.outline = new Outline(page.tree);
    new ResizeObserver(() => this.resize()).observe(page.canvas);
    this.resize();
  }

  dress(theme: Theme, labels: Labels, colours: Colouring): void {
    this.painter = new Painter(theme, labels, colours);
    this.refreshMinimap();
    this.describe();
    this.draw();
  }

  /** Shows a new scene. `still`: a box that keeps its place on the screen. */
  show(scene: Scene, still?: number): void {
    this.stop();
    const before = this.scene;
    const anchor = still === undefined ? undefined : before?.byItem.get(still);
    const { view } = this.camera;
    this.scene = scene;
    this.stop = transition(before, scene, (shown, t) => {
      this.shown = shown;
      const now = still === undefined ? undefined : shown.byItem.get(still);
      if (anchor !== undefined && now !== undefined) {
        this.camera.set({ ...view, x: view.x + now.x - anchor.x, y: view.y + now.y - anchor.y });
      }
      if (t === 1) {
        this.refreshMinimap();
      }
      this.draw();
    });
    this.describe();
    for (const action of this.waiting.splice(0)) {
      action();
    }
  }

  /** Does it with the scene that is shown; while one is being laid out, when that is there. */
  whenShown(action: () => void): void {
    if (this.scene === undefined) {
      this.waiting.push(action);
    } else {
      action();
    }
  }

  /** Another graph will come: no label of this one may be shown with it. */
  clear(): void {
    this.stop();
    this.scene = undefined;
    this.shown = undefined;
    this.marks = { selected: undefined, linked: new Set(), matches: undefined, current: undefined, far: [] };
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.fillStyle = this.painter?.theme.background ?? "";
    this.context.fillRect(0, 0, this.context.canvas.width, this.context.canvas.height);
    this.page.picture.style.visibility = "hidden"; // And again when its size changes.
    this.page.minimap.hidden = true;
    this.page.tree.replaceChildren();
  }

  /** The selection or the marks have changed. */
  mark(marks: Partial<Marks>): void {
    this.marks = { ...this.marks, ...marks };
    if ("selected" in marks) {
      this.describe();
    }
    this.draw();
  }

  draw(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
    }
    delete this.page.canvas.dataset["scale"]; // It is that of a picture at rest.
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      if (this.scene === undefined) {
        return; // The camera's position before the first picture is not kept.
      }
      this.page.canvas.dataset["scale"] = this.camera.view.scale.toFixed(4);
      this.onRest(this.camera.rest);
    }, REST_MS);
  }

  paint(): void {
    const { context, camera, painter, shown } = this;
    if (painter === undefined || shown === undefined) {
      return;
    }
    this.page.picture.style.visibility = "";
    const ratio = window.devicePixelRatio;
    const { x, y, scale } = camera.view;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = painter.theme.background;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    context.setTransform(scale * ratio, 0, 0, scale * ratio, -x * scale * ratio, -y * scale * ratio);
    this.pen.begin();
    const isMoving = shown !== this.scene;
    painter.draw(
      this.pen,
      shown,
      isMoving ? { ...this.marks, selected: undefined, far: [] } : this.marks,
      scale,
      camera.seen,
    );
    this.outline.place(camera.view); // With the picture, so that a click never meets the box beside.
    if (this.scene !== undefined) {
      this.minimap.frame(this.scene, painter.theme.focus);
    }
  }

  private describe(): void {
    if (this.scene !== undefined && this.painter !== undefined) {
      this.outline.show(this.scene, this.painter.labels, this.marks.selected);
      this.outline.place(this.camera.view);
      this.page.canvas.dataset["boxes"] = String(this.scene.byItem.size - 1);
    }
  }

  private refreshMinimap(): void {
    const { painter } = this;
    if (this.scene !== undefined && painter !== undefined) {
      this.minimap.show(this.scene, (box) => painter.colourOf(box), painter.theme.border);
    }
  }

  private resize(): void {
    const { picture, canvas } = this.page;
    const ratio = window.devicePixelRatio;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (picture.width !== width || picture.height !== height) {
      picture.width = width;
      picture.height = height;
      if (this.scene !== undefined) {
        this.camera.resized();
      }
      this.paint();
    }
  }
}
