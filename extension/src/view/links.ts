/** Which lines of the open texts belong together: the same user's line has the same colour in all of them. */

import { request } from "./server";

/** A line (0-based) with the number of the user's line that it came from, the same in all texts of a run. */
export interface LinkedLine {
  line: number;
  number: number;
}

/** A document and lines of it. */
export interface LinesOf {
  uri: string;
  lines: number[];
}

interface Linked {
  keys: { number: number }[];
  /** A line and the indices of its keys. */
  lines: [line: number, ...keys: number[]][];
}

export const COLOURS = 8;

/** Lines of a document that came from the user's lines. */
export async function linkedLines(run: string, uri: string): Promise<LinkedLine[]> {
  const { keys, lines } = await request<Linked>("irscope/linkedLines", { run, uri });
  return lines.flatMap(([line, first]) => {
    const key = first === undefined ? undefined : keys[first];
    return key === undefined ? [] : [{ line, number: key.number }];
  });
}

/** Lines of other documents of the run that belong to a line. */
export async function counterparts(run: string, uri: string, line: number, among: string[]): Promise<LinesOf[]> {
  return (await request<{ places: LinesOf[] }>("irscope/counterparts", { run, uri, line, among })).places;
}
