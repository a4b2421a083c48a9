/** A box of a flame chart. */

export interface Box {
  /** Unique in the chart. */
  id: number;
  parent: Box | undefined;
  name: string;
  label: string;
  compile: string;
  /** Seconds from the left edge of the chart; gaps between the compiles are left out. */
  start: number;
  seconds: number;
  own: number;
  depth: number;
  /** It ran in another thread beside the one that compiles. */
  beside: boolean;
  children: Box[];
}
