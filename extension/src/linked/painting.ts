/** What is drawn on the lines of a document, from what the server says of them. Knows no editor. */

import type { LinkedLines } from "../protocol";
import { PALETTE_SIZE } from "./colours";

export interface Chip {
  line: number;
  /** The number of the user's line, as people count, or `…`. */
  text: string;
  slot: number | undefined;
}

export interface Painting {
  /** Lines by colour of the palette. */
  bySlot: number[][];
  several: number[];
  chips: Chip[];
}

const MOST_CHIPS = 6;

/**
 * Lines of one origin get its colour. Lines of several get a neutral one, and the first of them in a row chips that name
 * the origins in their colours.
 */
export function paint({ keys, lines }: LinkedLines): Painting {
  const bySlot: number[][] = Array.from({ length: PALETTE_SIZE }, () => []);
  const several: number[] = [];
  const chips: Chip[] = [];
  let before = "";
  let last = -2;
  for (const [line, ...own] of lines) {
    if (line === undefined) {
      continue;
    }
    const [only] = own;
    const key = only === undefined ? undefined : keys[only];
    if (own.length === 1 && key !== undefined) {
      bySlot[key.number % PALETTE_SIZE]?.push(line);
    } else {
      several.push(line);
      const names = own.join();
      if (names !== before || line !== last + 1) {
        for (const each of own.slice(0, MOST_CHIPS)) {
          const origin = keys[each];
          if (origin !== undefined) {
            chips.push({ line, text: String(origin.line + 1), slot: origin.number % PALETTE_SIZE });
          }
        }
        if (own.length > MOST_CHIPS) {
          chips.push({ line, text: "…", slot: undefined });
        }
      }
    }
    before = own.join();
    last = line;
  }
  return { bySlot, several, chips };
}
