/** A box of a flame graph, and numbers with the units of measures. */

import * as units from "../../units";

export interface Box {
  /** Unique in the chart. */
  id: number;
  parent: Box | undefined;
  name: string;
  label: string;
  /** From the left edge of the chart, in the unit of the chart. */
  start: number;
  /** How wide it is. */
  size: number;
  /** What it stands for, where that is not its width: a change may be negative. */
  value?: number;
  depth: number;
  children: Box[];
}

export function valueOf({ value, size }: Box): number {
  return value ?? size;
}

/** A number with its unit: seconds, bytes, or how many. */
export function amount(value: number, unit: string): string {
  const size = Math.abs(value);
  const shown =
    unit === "seconds" ? units.duration(size) : unit === "bytes" ? units.size(size) : units.significant(size);
  return value < 0 ? `−${shown}` : shown;
}
