/** Which lines of the open texts belong together: the same user's line has the same colour in all of them. */

import type { Place } from "../protocol";
import { request } from "./server";

/** A line (0-based) with a number for the user's line that it came from; the same number in every text of a run. */
export interface LinkedLine {
  line: number;
  key: number;
}

export const COLOURS = 8;

/** Lines of a document that came from the user's lines; none where the server knows of no links. */
export async function linkedLines(run: string, uri: string): Promise<LinkedLine[]> {
  try {
    const { lines } = await request<{ lines: LinkedLine[] }>("irscope/linkedLines", { run, uri });
    return lines;
  } catch {
    return [];
  }
}

/** Places in all texts of the run that belong to a line. */
export async function counterparts(run: string, uri: string, line: number): Promise<Place[]> {
  try {
    const { places } = await request<{ places: Place[] }>("irscope/counterparts", { run, uri, line });
    return places;
  } catch {
    return [];
  }
}
