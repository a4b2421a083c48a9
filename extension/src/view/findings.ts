/** What a run found in a source, below the lines where it is. */

import { StateEffect, StateField, type Range, type Text } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, type DecorationSet } from "@codemirror/view";
import { h } from "../panels/dom";
import type { FindingGroup, Findings } from "../panels/results";
import { normal } from "./address";
import { request } from "./server";

/** A finding at a line (0-based). */
export interface LineFinding {
  line: number;
  severity: FindingGroup["severity"];
  code: string;
  message: string;
  hint: string;
}

/** The findings panel tells more than these on one line. */
const MOST_A_LINE = 4;
const SEVERITIES: FindingGroup["severity"][] = ["error", "warning", "information", "hint"];

/** The findings of a run in a source, those that the user hides left out; the gravest of a line first. */
export async function findingsIn(run: string, uri: string): Promise<LineFinding[]> {
  const { groups } = await request<Findings>("irscope/findings", { run });
  const found = groups.flatMap(({ severity, code, hints, places }) =>
    places
      .filter((place) => place.hidden === "" && place.uri !== "" && normal(place.uri) === normal(uri))
      .map(({ line, message }) => ({ line, severity, code, message, hint: hints[0]?.text ?? "" })),
  );
  return found.sort((a, b) => a.line - b.line || SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

class Told extends WidgetType {
  constructor(private readonly findings: readonly LineFinding[]) {
    super();
  }

  override eq(other: Told): boolean {
    return JSON.stringify(other.findings) === JSON.stringify(this.findings);
  }

  override toDOM(): HTMLElement {
    const shown = this.findings.slice(0, MOST_A_LINE);
    const rest = this.findings.length - shown.length;
    return h(
      "div",
      { class: "told", role: "note" },
      ...shown.map(({ severity, code, message, hint }) =>
        h(
          "div",
          { class: `finding ${severity}` },
          h("span", { class: "message" }, message),
          h("span", { class: "code" }, code),
          ...(hint === "" ? [] : [h("div", { class: "hint" }, `What to do: ${hint}`)]),
        ),
      ),
      ...(rest > 0 ? [h("div", { class: "finding" }, `${rest} more`)] : []),
    );
  }
}

const setFindings = StateEffect.define<LineFinding[]>();

export const findingsField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(known, transaction) {
    for (const each of transaction.effects) {
      if (each.is(setFindings)) {
        return decorations(transaction.state.doc, each.value);
      }
    }
    return known;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorations(doc: Text, findings: readonly LineFinding[]): DecorationSet {
  const byLine = new Map<number, LineFinding[]>();
  for (const finding of findings) {
    if (finding.line >= 0 && finding.line < doc.lines) {
      byLine.set(finding.line, [...(byLine.get(finding.line) ?? []), finding]);
    }
  }
  const made: Range<Decoration>[] = [];
  for (const [line, mine] of byLine) {
    const { from, to, text } = doc.line(line + 1);
    const start = from + text.length - text.trimStart().length;
    if (start < to) {
      made.push(Decoration.mark({ class: `squiggle ${mine[0]?.severity ?? "hint"}` }).range(start, to));
    }
    made.push(Decoration.widget({ widget: new Told(mine), block: true, side: 1 }).range(to));
  }
  return Decoration.set(made, true);
}

/** Shows what the runs found in these sources so far; a run that goes on may find more. */
export async function tellFindings(sources: { run: string; uri: string; view: EditorView }[]): Promise<void> {
  await Promise.all(
    sources.map(async ({ run, uri, view }) => {
      const found = await findingsIn(run, uri).catch(() => []); // A run that was deleted meanwhile.
      view.dispatch({ effects: setFindings.of(found) });
    }),
  );
}
