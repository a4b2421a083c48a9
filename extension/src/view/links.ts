/**
 * Which lines of the open texts belong together: the same user's line has the same colour in all of them, also in those
 * of other runs.
 */

import { sameUri } from "./address";
import { request } from "./server";
import { runOf, textOf } from "./stages";

/** A line (0-based) with the number of the user's line that it came from, the same in all texts that are seen. */
export interface LinkedLine {
  line: number;
  number: number;
}

/** A text that can be linked with others. */
export interface Linkable {
  readonly run: string;
  readonly uri: string;
  /** As it was read. */
  readonly whole: string;
  readonly text: { link(lines: LinkedLine[]): void; mark(lines: number[]): void };
}

/** A document and lines of it. */
interface LinesOf {
  uri: string;
  lines: number[];
}

interface Linked {
  keys: { number: number }[];
  /** A line and the indices of its keys. */
  lines: [line: number, ...keys: number[]][];
}

export const COLOURS = 8;

export class Links {
  /** The runs that share the colours of a text, if it has some. */
  private readonly sharedWith = new WeakMap<Linkable, string>();

  /** @param all the open texts @param visible those that can be seen */
  constructor(
    private readonly all: () => Linkable[],
    private readonly visible: () => Linkable[],
  ) {}

  /** Colours the texts that can be seen, if they have other colours or none: one numbering for all of their runs. */
  async colour(): Promise<void> {
    const visible = this.visible();
    const runs = [...new Set(visible.map(({ run }) => run))].sort();
    await Promise.all(
      visible.map(async (each) => {
        const key = runs.join();
        if (this.sharedWith.get(each) === key) {
          return;
        }
        this.sharedWith.set(each, key);
        const beside = runs.filter((run) => run !== each.run);
        // A text without links, for example of a run that goes on, is shown all the same.
        const lines = await linkedLines(each.run, each.uri, beside).catch(() => []);
        if (this.sharedWith.get(each) === key) {
          each.text.link(lines);
        }
      }),
    );
  }

  /** Marks the counterparts of a line: in all texts of its run, and in those of other runs that can be seen. */
  async mark(from: Linkable, line: number): Promise<void> {
    from.text.mark([]);
    const visible = this.visible();
    const open = this.all().filter((each) => each !== from && (each.run === from.run || visible.includes(each)));
    const linked = await Promise.all(open.map(async (each) => (await this.hasLinesOf(from, each)) && each));
    const others = linked.filter((each) => each !== false);
    if (others.length === 0) {
      return;
    }
    const among = [...new Set(others.map(({ uri }) => uri))];
    const places = await counterparts(from.run, from.uri, line, among).catch(() => []);
    for (const other of others) {
      const lines = places.filter(({ uri }) => sameUri(uri, other.uri)).flatMap(({ lines }) => lines);
      // The server knows one text of a file: no place gives the same line of it in the text of another run.
      other.text.mark(sameUri(from.uri, other.uri) ? [line] : lines);
    }
  }

  /** Whether lines of one's run mean something in another: not in a file of the user's that has changed between the runs. */
  private async hasLinesOf(from: Linkable, other: Linkable): Promise<boolean> {
    if (other.run === from.run || runOf(other.uri) !== undefined) {
      return true;
    }
    const then = await textOf(from.run, other.uri).catch(() => undefined);
    return then?.text === other.whole;
  }
}

/** Lines of a document that came from the user's lines; `beside`: other runs that have the same numbers. */
async function linkedLines(run: string, uri: string, beside: string[]): Promise<LinkedLine[]> {
  const { keys, lines } = await request<Linked>("irscope/linkedLines", { run, uri, beside });
  return lines.flatMap(([line, first]) => {
    const key = first === undefined ? undefined : keys[first];
    return key === undefined ? [] : [{ line, number: key.number }];
  });
}

/** Lines of other documents that belong to a line. */
async function counterparts(run: string, uri: string, line: number, among: string[]): Promise<LinesOf[]> {
  return (await request<{ places: LinesOf[] }>("irscope/counterparts", { run, uri, line, among })).places;
}
