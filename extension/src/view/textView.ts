/** A text that is read: highlighting, search, folding, and the lines that belong to those of other texts. */

import { foldGutter, foldKeymap } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSetBuilder, StateEffect, StateField, type Extension } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  type DecorationSet,
} from "@codemirror/view";
import { h } from "../panels/dom";
import { UNSEEN } from "../panels/visible";
import { findingsField } from "./findings";
import { highlighting } from "./highlighting/languages";
import { COLOURS, type LinkedLine } from "./links";

const setLinks = StateEffect.define<LinkedLine[]>();
const setActive = StateEffect.define<number[]>();

/** Decorations of whole lines. */
function lineField<Value>(
  effect: ReturnType<typeof StateEffect.define<Value[]>>,
  mark: (value: Value) => [number, string],
) {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(known, transaction) {
      for (const each of transaction.effects) {
        if (each.is(effect)) {
          const builder = new RangeSetBuilder<Decoration>();
          const { doc } = transaction.state;
          const marks = each.value.map(mark).sort(([left], [right]) => left - right);
          for (const [line, name] of marks) {
            if (line >= 0 && line < doc.lines) {
              const { from } = doc.line(line + 1);
              builder.add(from, from, Decoration.line({ class: name }));
            }
          }
          return builder.finish();
        }
      }
      return known;
    },
    provide: (field) => EditorView.decorations.from(field),
  });
}

const linkField = lineField(setLinks, ({ line, number }) => [line, `linked linked-${number % COLOURS}`]);
const activeField = lineField(setActive, (line) => [line, "counterpart"]);

/** What all texts of the page have. */
export function reading(language: string, label: string): Extension {
  const nonce = document.querySelector("script")?.nonce ?? "";
  return [
    EditorState.readOnly.of(true),
    EditorView.cspNonce.of(nonce),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", tabindex: "0" }),
    lineNumbers(),
    drawSelection(),
    highlightSpecialChars({ addSpecialChars: UNSEEN, render: written }),
    search({ top: true }),
    highlighting(language),
  ];
}

/** A character that cannot be seen, or that turns the direction of others. */
function written(code: number, description: string | null): HTMLElement {
  const title = description ?? "Control character";
  return h("span", { class: "cm-specialChar", title }, String.fromCharCode(code));
}

export interface TextViewOptions {
  text: string;
  language: string;
  label: string;
  /** The cursor came to another line (0-based), moved by the user. */
  onCursor: (line: number) => void;
}

export class TextView {
  readonly view: EditorView;
  private moving = false;

  constructor(parent: HTMLElement, { text, language, label, onCursor }: TextViewOptions) {
    let last = -1;
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text,
        extensions: [
          reading(language, label),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          foldGutter(),
          linkField,
          activeField,
          findingsField,
          keymap.of([...searchKeymap, ...foldKeymap]),
          EditorView.updateListener.of((update) => {
            if (update.selectionSet && !this.moving) {
              const line = this.line;
              if (line !== last) {
                last = line;
                onCursor(line);
              }
            }
          }),
        ],
      }),
    });
  }

  /** 0-based. */
  get line(): number {
    const { doc, selection } = this.view.state;
    return doc.lineAt(selection.main.head).number - 1;
  }

  get lines(): number {
    return this.view.state.doc.lines;
  }

  /** Puts the cursor on a line and shows it; `quietly` without telling that it moved. */
  goTo(line: number, { quietly = false, focus = true } = {}): void {
    const { doc } = this.view.state;
    const { from } = doc.line(Math.min(Math.max(line, 0) + 1, doc.lines));
    this.moving = quietly;
    this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.moving = false;
    if (focus) {
      this.view.focus();
    }
  }

  link(lines: LinkedLine[]): void {
    this.view.dispatch({ effects: setLinks.of(lines) });
  }

  /** Marks the counterparts of a line in another text; if none of them is seen, shows the one that was given first. */
  mark(lines: number[]): void {
    const { doc } = this.view.state;
    const given = [...new Set(lines)].filter((line) => line >= 0 && line < doc.lines);
    const known = [...given].sort((a, b) => a - b);
    const effects: StateEffect<unknown>[] = [setActive.of(known)];
    const [first] = given;
    if (first !== undefined && !known.some((line) => this.isSeen(line))) {
      effects.push(EditorView.scrollIntoView(doc.line(first + 1).from, { y: "center" }));
    }
    this.view.dispatch({ effects });
  }

  destroy(): void {
    this.view.destroy();
  }

  private isSeen(line: number): boolean {
    const { from } = this.view.state.doc.line(line + 1);
    const top = this.view.lineBlockAt(from).top + this.view.documentTop;
    const box = this.view.scrollDOM.getBoundingClientRect();
    return top >= box.top && top + 16 <= box.bottom;
  }
}
