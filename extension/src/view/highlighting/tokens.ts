/**
 * The tokens of one text, by the grammar that VS Code uses. This part runs in the worker.
 *
 * A text is read in chunks of lines, and only the chunks on the screen are read. The state at the end of a chunk is kept, so
 * that the next one goes on from there. A chunk far below all that was read starts some chunks above it, without a state: no
 * grammar of ours has a construct that is longer, except a very long block comment.
 */

import { createJavaScriptRegexEngine } from "@shikijs/engine-javascript";
import { EncodedTokenMetadata, INITIAL, Registry, type IGrammar, type StateStack } from "@shikijs/vscode-textmate";
import { grammars } from "contributed-grammars";
import { CHUNK_LINES, type Spans, type TextToColour } from "./messages";
import { numberIn, THEME } from "./scopes";

const MOST_CHUNKS_ABOVE = 5;
/** As VS Code's `editor.maxTokenizationLineLength`. A longer line stays plain. */
const LONGEST_LINE = 20_000;
/** What takes longer stays plain. A regular expression cannot be interrupted here: the page ends the worker then. */
const LINE_MS = 100;
const CHUNK_MS = 500;

const engine = createJavaScriptRegexEngine();
const registry = new Registry({
  onigLib: { createOnigScanner: (patterns) => engine.createScanner(patterns), createOnigString: engine.createString },
  loadGrammar: (scope) => Object.values(grammars).find(({ scopeName }) => scopeName === scope),
  theme: THEME,
});
const colours = registry.getColorMap();

export class Tokens {
  private readonly grammar: IGrammar;
  private readonly lines: string[];
  /** The states at the start of chunks. */
  private readonly starts = new Map<number, StateStack>([[0, INITIAL]]);

  constructor({ language, text, skipped }: TextToColour) {
    const raw = grammars[language];
    const grammar = raw && registry.loadGrammar(raw.scopeName);
    if (!grammar) {
      throw new Error(`There is no grammar for the language ${language}.`);
    }
    this.grammar = grammar;
    grammar.tokenizeLine2("", INITIAL); // compiles the patterns, which must not count as the time of the first line
    this.lines = text.split("\n");
    skipped.forEach((chunk) => this.starts.set(chunk + 1, INITIAL));
  }

  chunk(wanted: number): Spans {
    let first = wanted;
    while (!this.starts.has(first) && wanted - first < MOST_CHUNKS_ABOVE) {
      first -= 1;
    }
    let spans: number[] = [];
    for (let chunk = first; chunk <= wanted; chunk += 1) {
      spans = this.read(chunk, this.starts.get(chunk) ?? INITIAL);
    }
    return Uint32Array.from(spans);
  }

  private read(chunk: number, start: StateStack): number[] {
    const deadline = performance.now() + CHUNK_MS;
    const spans: number[] = [];
    let state = start;
    let offset = 0;
    for (const line of this.lines.slice(chunk * CHUNK_LINES, (chunk + 1) * CHUNK_LINES)) {
      if (line.length <= LONGEST_LINE && performance.now() < deadline) {
        state = this.readLine(line, state, offset, spans);
      }
      offset += line.length + 1;
    }
    this.starts.set(chunk + 1, state);
    return spans;
  }

  private readLine(line: string, state: StateStack, offset: number, spans: number[]): StateStack {
    let read = this.grammar.tokenizeLine2(line, state, LINE_MS);
    if (read.stoppedEarly) {
      // The time is that of a clock: on a busy machine the thread may have waited, so it is tried once more.
      read = this.grammar.tokenizeLine2(line, state, LINE_MS);
    }
    const { tokens, ruleStack, stoppedEarly } = read;
    for (let at = 0; at < tokens.length; at += 2) {
      const from = tokens[at] ?? 0;
      const to = tokens[at + 2] ?? line.length;
      const number = numberIn(colours[EncodedTokenMetadata.getForeground(tokens[at + 1] ?? 0)]);
      if (number > 0 && from < to) {
        spans.push(offset + from, offset + to, number);
      }
    }
    return stoppedEarly ? state : ruleStack;
  }
}
