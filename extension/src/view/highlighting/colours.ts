/** Colours a text by its grammar, where it is seen: the tokens come from the worker, chunk by chunk. */

import { RangeSetBuilder, type Extension } from "@codemirror/state";
import { Decoration, ViewPlugin, type DecorationSet, type EditorView, type ViewUpdate } from "@codemirror/view";
import { CHUNK_LINES, type Spans } from "./messages";
import { CLASSES } from "./scopes";
import { TokenizedText } from "./tokenizer";

const MARKS = CLASSES.map((name) => Decoration.mark({ class: name }));

/** For a text that does not change. */
export function grammarColours(language: string): Extension {
  return ViewPlugin.define((view) => new Colours(view, language), { decorations: ({ decorations }) => decorations });
}

class Colours {
  decorations: DecorationSet = Decoration.none;
  private readonly chunks = new Map<number, Spans>();
  private readonly text: TokenizedText;
  private hasNews = false;

  constructor(view: EditorView, language: string) {
    this.text = new TokenizedText(language, view.state.doc.toString(), (chunk, spans) => {
      this.chunks.set(chunk, spans);
      this.hasNews = true;
      view.dispatch({});
    });
    this.lookAt(view);
  }

  update({ view, viewportChanged }: ViewUpdate): void {
    if (viewportChanged || this.hasNews) {
      this.hasNews = false;
      this.lookAt(view);
    }
  }

  destroy(): void {
    this.text.close();
  }

  private lookAt(view: EditorView): void {
    const { doc } = view.state;
    const builder = new RangeSetBuilder<Decoration>();
    const missing = new Set<number>();
    let drawn = 0;
    for (const { from, to } of view.visibleRanges) {
      const last = chunkOf(doc.lineAt(to).number);
      for (let chunk = chunkOf(doc.lineAt(from).number); chunk <= last; chunk += 1) {
        const spans = this.chunks.get(chunk);
        if (spans === undefined) {
          missing.add(chunk);
        } else {
          drawn = draw(spans, doc.line(chunk * CHUNK_LINES + 1).from, Math.max(from, drawn), to, builder);
        }
      }
    }
    this.decorations = builder.finish();
    this.text.want([...missing]);
  }
}

/** @param line 1-based */
function chunkOf(line: number): number {
  return Math.floor((line - 1) / CHUNK_LINES);
}

/** Adds the tokens between two places of the text; returns where the last of them ends. */
function draw(spans: Spans, start: number, from: number, to: number, builder: RangeSetBuilder<Decoration>): number {
  let drawn = from;
  for (let at = 0; at < spans.length; at += 3) {
    const tokenFrom = Math.max(start + (spans[at] ?? 0), drawn);
    const tokenTo = Math.min(start + (spans[at + 1] ?? 0), to);
    const mark = MARKS[spans[at + 2] ?? 0];
    if (mark !== undefined && tokenFrom < tokenTo) {
      builder.add(tokenFrom, tokenTo, mark);
      drawn = tokenTo;
    }
  }
  return drawn;
}
