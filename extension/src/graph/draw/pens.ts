/** Two ways to draw the same picture: on the canvas, and as the text of an SVG. */

import { visible } from "../../panels/visible";
import type { Wire } from "../layout/scene";

export interface Shape {
  fill?: string | undefined;
  stroke?: string | undefined;
  width?: number;
  dash?: readonly number[] | undefined;
}

export interface Lettering {
  size: number;
  colour: string;
  font: string;
  bold?: boolean;
  align?: "left" | "right" | "center";
}

export interface Pen {
  /** The opacity of all that follows, from 0 to 1. */
  opacity(value: number): void;
  rect(x: number, y: number, width: number, height: number, radius: number, shape: Shape): void;
  polygon(points: readonly number[], fill: string): void;
  curve(points: readonly number[], stroke: string, width: number, dash?: readonly number[]): void;
  /** Wires of one cluster; the list is kept by who calls, so that what is made of it can be kept, too. */
  wires(wires: readonly Wire[], stroke: string, width: number, withArrows: boolean): void;
  text(text: string, x: number, y: number, lettering: Lettering): void;
}

const BEND = 6;
const ARROW_LENGTH = 6;
const ARROW_WIDTH = 5;

interface Paths {
  lines: Path2D;
  arrows: Path2D;
}

export class CanvasPen implements Pen {
  private readonly paths = new WeakMap<readonly Wire[], Paths>();
  private font = "";

  constructor(private readonly context: CanvasRenderingContext2D) {}

  /** To be called when the canvas was cleared or given another size. */
  begin(): void {
    this.font = "";
    this.context.globalAlpha = 1;
    this.context.textBaseline = "alphabetic";
    this.context.lineJoin = "round";
  }

  opacity(value: number): void {
    this.context.globalAlpha = value;
  }

  rect(x: number, y: number, width: number, height: number, radius: number, shape: Shape): void {
    const { context } = this;
    if (radius === 0) {
      if (shape.fill !== undefined) {
        context.fillStyle = shape.fill;
        context.fillRect(x, y, width, height);
      }
      if (shape.stroke !== undefined) {
        this.line(shape);
        context.strokeRect(x, y, width, height);
      }
    } else {
      context.beginPath();
      context.roundRect(x, y, width, height, radius);
      if (shape.fill !== undefined) {
        context.fillStyle = shape.fill;
        context.fill();
      }
      if (shape.stroke !== undefined) {
        this.line(shape);
        context.stroke();
      }
    }
    if (shape.dash !== undefined) {
      context.setLineDash([]);
    }
  }

  polygon(points: readonly number[], fill: string): void {
    this.context.fillStyle = fill;
    this.context.beginPath();
    for (let at = 0; at < points.length; at += 2) {
      this.context.lineTo(points[at] ?? 0, points[at + 1] ?? 0);
    }
    this.context.fill();
  }

  curve(points: readonly number[], stroke: string, width: number, dash?: readonly number[]): void {
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = points;
    this.line({ stroke, width, dash });
    this.context.beginPath();
    this.context.moveTo(a, b);
    this.context.bezierCurveTo(c, d, e, f, g, h);
    this.context.stroke();
    this.context.setLineDash([]);
  }

  wires(wires: readonly Wire[], stroke: string, width: number, withArrows: boolean): void {
    let paths = this.paths.get(wires);
    if (paths === undefined) {
      paths = { lines: new Path2D(wires.map(wirePath).join("")), arrows: new Path2D(wires.map(arrowPath).join("")) };
      this.paths.set(wires, paths);
    }
    this.line({ stroke, width });
    this.context.stroke(paths.lines);
    if (withArrows) {
      this.context.fillStyle = stroke;
      this.context.fill(paths.arrows);
    }
  }

  text(text: string, x: number, y: number, { size, colour, font, bold = false, align = "left" }: Lettering): void {
    const wanted = `${bold ? "600 " : ""}${size}px ${font}`;
    if (wanted !== this.font) {
      this.font = wanted;
      this.context.font = wanted;
    }
    this.context.textAlign = align;
    this.context.fillStyle = colour;
    this.context.fillText(visible(text), x, y);
  }

  private line({ stroke = "", width = 1, dash }: Shape): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    if (dash !== undefined) {
      this.context.setLineDash([...dash]);
    }
  }
}

/** Collects an SVG. Texts are escaped; no part of the drawing is markup. */
export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private alpha = "";

  opacity(value: number): void {
    this.alpha = value === 1 ? "" : ` opacity="${round(value)}"`;
  }

  rect(x: number, y: number, width: number, height: number, radius: number, shape: Shape): void {
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}"${attributes(shape)}${this.alpha}/>`,
    );
  }

  polygon(points: readonly number[], fill: string): void {
    this.parts.push(`<polygon points="${points.map(round).join(" ")}" fill="${escaped(fill)}"${this.alpha}/>`);
  }

  curve(points: readonly number[], stroke: string, width: number, dash?: readonly number[]): void {
    const [a = 0, b = 0, ...rest] = points.map(round);
    this.parts.push(`<path d="M${a} ${b}C${rest.join(" ")}"${attributes({ stroke, width, dash })}${this.alpha}/>`);
  }

  wires(wires: readonly Wire[], stroke: string, width: number, withArrows: boolean): void {
    if (wires.length > 0) {
      this.parts.push(`<path d="${wires.map(wirePath).join("")}"${attributes({ stroke, width })}${this.alpha}/>`);
      if (withArrows) {
        this.parts.push(`<path d="${wires.map(arrowPath).join("")}" fill="${escaped(stroke)}"${this.alpha}/>`);
      }
    }
  }

  text(text: string, x: number, y: number, { size, colour, font, bold = false, align = "left" }: Lettering): void {
    const anchor = { left: "", center: ' text-anchor="middle"', right: ' text-anchor="end"' }[align];
    const weight = bold ? ' font-weight="600"' : "";
    this.parts.push(
      `<text x="${round(x)}" y="${round(y)}" font-size="${size}" font-family="${escaped(font)}" fill="${escaped(colour)}"${weight}${anchor}${this.alpha}>${escaped(visible(text))}</text>`,
    );
  }

  /** The whole document, as large as what was drawn. */
  finish(width: number, height: number, background: string, title: string): string {
    const box = `viewBox="-20 -20 ${round(width + 40)} ${round(height + 40)}" width="${round(width + 40)}" height="${round(height + 40)}"`;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" ${box} role="img">`,
      `<title>${escaped(title)}</title>`,
      `<rect x="-20" y="-20" width="100%" height="100%" fill="${escaped(background)}"/>`,
      ...this.parts,
      "</svg>\n",
    ].join("\n");
  }
}

function attributes({ fill, stroke, width = 1, dash }: Shape): string {
  const line = stroke === undefined ? "" : ` stroke="${escaped(stroke)}" stroke-width="${round(width)}"`;
  const dashes = dash === undefined ? "" : ` stroke-dasharray="${dash.join(" ")}"`;
  return ` fill="${fill === undefined ? "none" : escaped(fill)}"${line}${dashes}`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Text as XML allows it; what XML does not allow becomes a replacement character. */
function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD")
    .replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}

/** A wire with its bends rounded. */
function wirePath({ points }: Wire): string {
  const at = (index: number): [number, number] => [points[2 * index] ?? 0, points[2 * index + 1] ?? 0];
  const last = points.length / 2 - 1;
  let path = `M${at(0).map(round).join(" ")}`;
  for (let index = 1; index < last; index += 1) {
    const [[ax, ay], [bx, by], [cx, cy]] = [at(index - 1), at(index), at(index + 1)];
    const [into, out] = [Math.hypot(bx - ax, by - ay), Math.hypot(cx - bx, cy - by)];
    const bend = Math.min(BEND, into / 2, out / 2);
    if (bend < 0.5) {
      path += `L${round(bx)} ${round(by)}`;
    } else {
      const [fromX, fromY] = [bx - ((bx - ax) * bend) / into, by - ((by - ay) * bend) / into];
      const [toX, toY] = [bx + ((cx - bx) * bend) / out, by + ((cy - by) * bend) / out];
      path += `L${round(fromX)} ${round(fromY)}Q${round(bx)} ${round(by)} ${round(toX)} ${round(toY)}`;
    }
  }
  return `${path}L${at(last).map(round).join(" ")}`;
}

function arrowPath({ points }: Wire): string {
  const end = points.length;
  const [fromX = 0, fromY = 0, x = 0, y = 0] = points.slice(end - 4);
  const length = Math.hypot(x - fromX, y - fromY) || 1;
  const [dx, dy] = [(x - fromX) / length, (y - fromY) / length];
  const [baseX, baseY] = [x - dx * ARROW_LENGTH, y - dy * ARROW_LENGTH];
  const [sideX, sideY] = [(-dy * ARROW_WIDTH) / 2, (dx * ARROW_WIDTH) / 2];
  return `M${round(x)} ${round(y)}L${round(baseX + sideX)} ${round(baseY + sideY)}L${round(baseX - sideX)} ${round(baseY - sideY)}Z`;
}
