/** The memory plan of a graph as data: bytes by category, what is held at a step, where keys lead. */

import * as units from "../../units";
import type { Place } from "../../protocol";
import type { MemoryBuffer, MemoryPlaces, MemoryPlan } from "../results";
import { visible } from "../visible";

export type Category = MemoryBuffer["category"];

export const CATEGORIES: { category: Category; title: string; hint: string }[] = [
  { category: "parameters", title: "parameters", hint: "Parameters and buffers of modules" },
  { category: "optimizer", title: "optimizer state", hint: "What the optimizer keeps from step to step" },
  { category: "inputs", title: "inputs, variables", hint: "What the script's variables hold" },
  { category: "gradients", title: "gradients", hint: "The gradients of parameters, and what the backward returns" },
  { category: "kept", title: "kept for the backward", hint: "Returned by the forward for its backward alone" },
  { category: "returned", title: "returned", hint: "What the caller gets" },
  { category: "temporary", title: "temporary", hint: "Freed before the end" },
];

/** Rows of the table; more would only be scrolled past. */
const MOST_ROWS = 200;

export function categoryTitle({ category }: MemoryBuffer): string {
  return CATEGORIES.find((each) => each.category === category)?.title ?? category;
}

/** What a measured step holds at other times than its peak. */
const OTHERS = { category: "others", title: "not held at the peak", hint: "Freed before the peak, or made after it" } as const; // prettier-ignore

/** The categories that hold something at some step, from the bottom up. */
export function legendOf(plan: MemoryPlan): { category: Category | "others"; title: string; hint: string }[] {
  const by = liveBy(plan);
  return [...CATEGORIES, OTHERS].filter(({ category }) => by.get(category)?.some((bytes) => bytes > 0));
}

/** Bytes at each step, by category. */
export function liveBy(plan: MemoryPlan): Map<Category | "others", number[]> {
  const found = new Map<Category | "others", number[]>();
  const there = new Set(plan.buffers.map(({ category }) => category));
  for (const { category } of CATEGORIES.filter((each) => there.has(each.category))) {
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
  if (plan.measured) {
    const held = [...found.values()];
    const others = plan.live.map((live, step) =>
      Math.max(
        0,
        held.reduce((left, by) => left - (by[step] ?? 0), live),
      ),
    );
    found.set(OTHERS.category, others);
  }
  return found;
}

/** The step areas of the categories, stacked from the bottom up, as SVG paths in a picture of 1000 × 1000 units. */
export function areaPaths(plan: MemoryPlan): { category: Category | "others"; path: string }[] {
  const most = Math.max(1, ...plan.live);
  const steps = Math.max(1, plan.steps.length);
  const y = (bytes: number): string => (1000 - (1000 * bytes) / most).toFixed(1);
  const x = (step: number): string => ((1000 * step) / steps).toFixed(2);
  let below = new Array<number>(plan.steps.length).fill(0);
  return [...liveBy(plan)].map(([category, live]) => {
    const top = live.map((bytes, step) => bytes + (below[step] ?? 0));
    const there = top.map((bytes, step) => `L${x(step)} ${y(bytes)}L${x(step + 1)} ${y(bytes)}`).join("");
    const back = below
      .map((bytes, step) => `L${x(step + 1)} ${y(bytes)}L${x(step)} ${y(bytes)}`)
      .reverse()
      .join("");
    below = top;
    return { category, path: `M0 1000${there}${back}Z` };
  });
}

/** What holds memory at a step of the schedule. */
export interface AtStep {
  step: number;
  kernel: string;
  /** Bytes of all buffers at this step. */
  live: number;
  isPeak: boolean;
  /** How many buffers hold memory. */
  count: number;
  /** The largest of them, the largest first. */
  largest: MemoryBuffer[];
  /** How many others there are, and their bytes. */
  rest: { count: number; bytes: number };
}

/** @param wanted a step; one outside of the schedule is taken as its first or last */
export function atStep(plan: MemoryPlan, wanted: number): AtStep {
  const step = Math.min(Math.max(0, wanted), plan.steps.length - 1);
  const holding = plan.buffers
    .filter((buffer) => buffer.category !== "borrowed" && buffer.first <= step && step <= buffer.last)
    .sort((a, b) => b.bytes - a.bytes);
  const rest = holding.slice(MOST_ROWS);
  return {
    step,
    kernel: plan.steps[step] ?? "",
    live: plan.live[step] ?? 0,
    isPeak: step === plan.peak,
    count: holding.length,
    largest: holding.slice(0, MOST_ROWS),
    rest: { count: rest.length, bytes: rest.reduce((sum, { bytes }) => sum + bytes, 0) },
  };
}

export type PlacesByBuffer = ReadonlyMap<string, Place[]>;

/** The user's lines that made the buffers of a plan, as far as they are known. */
export function placesOf({ stage }: MemoryPlan, known: MemoryPlaces | undefined): PlacesByBuffer {
  const plan = known?.plans.find((each) => each.stage === stage);
  return new Map(plan?.buffers.map(({ name, places }) => [name, places]));
}

/** What a screen reader says of a step. */
export function spoken(plan: MemoryPlan, at: AtStep): string {
  const { kernel, live } = at;
  return visible([titleOf(plan, at), ...(plan.measured ? [] : [kernel]), units.size(live)].join(", "));
}

/** Where a step of the schedule, or of the measured time, is. */
export function titleOf(plan: MemoryPlan, { step, kernel }: AtStep): string {
  return plan.measured ? `At ${kernel} of the step` : `Call ${step + 1} of ${plan.steps.length}`;
}

/** The step that a key of a slider leads to; undefined for other keys. */
export function stepAt(key: string, step: number, steps: number): number | undefined {
  const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[key];
  if (by !== undefined) {
    return step + by;
  }
  return { Home: 0, End: steps - 1 }[key];
}
