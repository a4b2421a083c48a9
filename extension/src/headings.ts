/** The stages and kernels of a compile below the headings that the server gives them. */

import * as units from "./units";
import type { CompileItem, KernelItem, StageItem } from "./protocol";

export interface Heading {
  title: string;
  stages: StageItem[];
  kernels: KernelItem[];
}

/** In the server's order. */
export function headingsOf({ groups, stages, kernels }: CompileItem): Heading[] {
  return groups.map((title) => ({
    title,
    stages: stages.filter(({ group }) => group === title),
    kernels: kernels.filter(({ group }) => group === title),
  }));
}

/** A single heading would only be in the way: what is below it is listed without it. */
export function isWorthHeadings(headings: Heading[]): boolean {
  return headings.length > 1;
}

/** `24 kernels`, `7 stages`, `2 kernels, 10 stages`. */
export function countsOf({ stages, kernels }: Heading): string {
  return [
    ...(kernels.length > 0 ? [units.kernelsOf(kernels)] : []),
    ...(stages.length > 0 ? [units.count(stages.length, "stage")] : []),
  ].join(", ");
}
