/** The memory of a plan over its steps, stacked by category. */

import { s } from "../dom";
import type { Category, MemoryPlan } from "../results";

export const CATEGORIES: { category: Category; title: string; hint: string }[] = [
  { category: "kept", title: "kept for the backward", hint: "Returned by the forward for its backward alone" },
  { category: "returned", title: "returned", hint: "What the caller gets" },
  { category: "temporary", title: "temporary", hint: "Freed before the end" },
];

/** Bytes at each step, by category. */
export function liveBy(plan: MemoryPlan): Map<Category, number[]> {
  const found = new Map<Category, number[]>();
  for (const { category } of CATEGORIES) {
    const change = new Array<number>(plan.steps.length + 1).fill(0);
    for (const buffer of plan.buffers) {
      if (buffer.category === category) {
        change[buffer.first] = (change[buffer.first] ?? 0) + buffer.bytes;
        const end = Math.min(buffer.last, plan.steps.length - 1) + 1;
        change[end] = (change[end] ?? 0) - buffer.bytes;
      }
    }
    let sum = 0;
    found.set(
      category,
      change.slice(0, plan.steps.length).map((by) => (sum += by)),
    );
  }
  return found;
}

/** A picture of 1000 × 1000 units, stretched over its place: step areas from the bottom up. */
export function areas(plan: MemoryPlan): SVGSVGElement {
  const most = Math.max(1, ...plan.live);
  const steps = Math.max(1, plan.steps.length);
  const svg = s("svg", {
    viewBox: "0 0 1000 1000",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    class: "areas",
  });
  const y = (bytes: number): string => (1000 - (1000 * bytes) / most).toFixed(1);
  const x = (step: number): string => ((1000 * step) / steps).toFixed(2);
  let below = new Array<number>(plan.steps.length).fill(0);
  for (const [category, live] of liveBy(plan)) {
    const top = live.map((bytes, step) => bytes + (below[step] ?? 0));
    const there = top.map((bytes, step) => `L${x(step)} ${y(bytes)}L${x(step + 1)} ${y(bytes)}`).join("");
    const back = below
      .map((bytes, step) => `L${x(step + 1)} ${y(bytes)}L${x(step)} ${y(bytes)}`)
      .reverse()
      .join("");
    svg.append(s("path", { class: `area ${category}`, d: `M0 1000${there}${back}Z` }));
    below = top;
  }
  return svg;
}
