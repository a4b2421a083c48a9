/** What is said of the stage that is chosen: its passes, the documents that belong to it, its operations. */

import * as bridge from "../bridge";
import { button, h } from "../dom";
import type { PassItem, PipelineStage, StageEntry } from "../results";
import { symbolText } from "../symbols";
import { placeLink } from "../view";
import * as units from "../../units";
import { isMatch } from "./search";

const MOST_OPS = 12;

export function details(
  stage: PipelineStage,
  previous: PipelineStage | undefined,
  run: string,
  wanted: string,
  { open }: { open: () => void },
): HTMLElement[] {
  const entry = stage.entries[0];
  const before = previous?.entries[0];
  const actions = h("div", { class: "actions" }, button("Open", open, { class: "primary" }));
  // An IR and code have no lines in common.
  const isAlike = previous?.role === stage.role && stage.entries.length === 1;
  if (entry !== undefined && before !== undefined && previous !== undefined && isAlike) {
    const title = `${previous.title} ↔ ${stage.title}`;
    actions.append(
      button("Compare with Previous", () => bridge.compare(before.uri, entry.uri, title), {
        title: `Compare with: ${previous.title}`,
      }),
    );
  }
  if (stage.isGraph) {
    actions.append(
      button("Show Graph", () => bridge.show("graph", { run, stage: stage.stage, title: stage.title }), {
        title: "Draw this graph",
      }),
    );
  }
  return [
    h("h2", {}, stage.title),
    h(
      "p",
      { class: "dim" },
      [units.size(stage.bytes), ...(stage.seconds === null ? [] : [`made in ${units.duration(stage.seconds)}`])].join(
        " · ",
      ),
    ),
    actions,
    ...passes(stage, wanted),
    ...entries(stage.entries.length > 1 ? `${stage.title}` : "", stage.entries.length > 1 ? stage.entries : [], wanted),
    ...entries("Belongs to it", stage.beside, ""),
    ...operations(stage, wanted),
    ...symbols(stage),
  ];
}

function passes(stage: PipelineStage, wanted: string): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (stage.passes.length > 0) {
    found.push(
      h("h3", {}, "Passes that changed it"),
      h("ol", { class: "passes" }, ...stage.passes.map((pass) => passRow(pass, isMatch(pass.name, wanted)))),
    );
  }
  if (stage.quiet.length > 0) {
    const hit = stage.quiet.some(({ name }) => isMatch(name, wanted));
    const quiet = h(
      "details",
      { class: "quiet" },
      h("summary", {}, `${units.count(stage.quiet.length, "pass", "passes")} changed nothing`),
      h(
        "ul",
        {},
        ...stage.quiet.map(({ name, seconds: took, count }) =>
          h(
            "li",
            { class: isMatch(name, wanted) ? "hit" : "" },
            h("code", {}, name),
            h("span", { class: "dim" }, `${count > 1 ? ` ×${count}` : ""} ${units.duration(took)}`),
          ),
        ),
      ),
    );
    quiet.open = hit;
    found.push(quiet);
  }
  return found;
}

function passRow(pass: PassItem, hit: boolean): HTMLElement {
  const where = pass.subgraph === "" ? "" : ` in ${pass.subgraph}`;
  const names = [
    ...pass.namesAdded.map((name) => `+ ${name}`),
    ...pass.namesRemoved.map((name) => `− ${name}`),
    ...pass.namesChanged.map((name) => `~ ${name}`),
  ];
  return h(
    "li",
    { class: hit ? "hit" : "" },
    h(
      "div",
      { class: "pass" },
      button(pass.name, () => bridge.open({ uri: pass.uri, line: 0 }), {
        class: "link code",
        title: `The graph after ${pass.name}${where}`,
      }),
      h("span", { class: "counts" }, ...counts(pass)),
      h("span", { class: "dim" }, units.duration(pass.seconds)),
      pass.before !== null &&
        button(
          "Compare",
          () => pass.before !== null && bridge.compare(pass.before, pass.uri, `${pass.name}: before ↔ after`),
          {
            class: "small",
            "aria-label": `Compare the graph before and after ${pass.name}`,
          },
        ),
    ),
    names.length > 0 && h("details", { class: "names" }, h("summary", {}, "nodes"), h("code", {}, names.join("  "))),
  );
}

/** `+17 −8 ~8`, with words for a screen reader. */
function counts(pass: PassItem): HTMLElement[] {
  const found = (
    [
      ["added", "+", pass.added],
      ["removed", "−", pass.removed],
      ["changed", "~", pass.changed],
    ] as const
  )
    .filter(([, , count]) => count > 0)
    .map(([word, sign, count]) =>
      h(
        "span",
        { class: word, title: `${count} ${word}` },
        `${sign}${count}`,
        h("span", { class: "only-read" }, ` ${word}`),
      ),
    );
  return found.length === 0 && pass.moved ? [h("span", { class: "changed" }, "reordered")] : found;
}

function entries(title: string, given: StageEntry[], wanted: string): HTMLElement[] {
  if (given.length === 0) {
    return [];
  }
  return [
    h("h3", {}, title),
    h(
      "ul",
      { class: "entries" },
      ...given.map((entry) =>
        h(
          "li",
          { class: isMatch(entry.title, wanted) ? "hit" : "" },
          placeLink({ uri: entry.uri, line: 0 }, entry.title),
          h("span", { class: "dim" }, ` ${units.size(entry.bytes)}`),
        ),
      ),
    ),
  ];
}

function operations(stage: PipelineStage, wanted: string): HTMLElement[] {
  const uri = stage.entries[0]?.uri;
  if (stage.ops.length === 0 || uri === undefined) {
    return [];
  }
  const matching = wanted.trim() === "" ? stage.ops : stage.ops.filter((op) => isMatch(op.name, wanted));
  const list = (ops: PipelineStage["ops"]): HTMLElement =>
    h(
      "ul",
      { class: "ops" },
      ...ops.map((op) =>
        h(
          "li",
          { class: isMatch(op.name, wanted) ? "hit" : "" },
          placeLink({ uri, line: op.line }, shortOp(op.name)),
          h("span", { class: "dim" }, ` ×${op.count}`),
        ),
      ),
    );
  const rest = matching.slice(MOST_OPS);
  return [
    h("h3", {}, "Operations"),
    list(matching.slice(0, MOST_OPS)),
    ...(rest.length > 0 ? [h("details", {}, h("summary", {}, `${rest.length} more`), list(rest))] : []),
  ];
}

/** What the symbolic sizes of a graph stand for. */
function symbols(stage: PipelineStage): HTMLElement[] {
  if (stage.symbols.length === 0) {
    return [];
  }
  const rows = stage.symbols.map(({ name, text, source }) =>
    h("li", {}, h("code", {}, name), h("span", { class: "dim" }, ` ${symbolText(text, source)}`)),
  );
  return [h("h3", {}, "Symbolic sizes"), h("ul", { class: "symbols" }, ...rows)];
}

function shortOp(name: string): string {
  return name
    .replace(/^torch\.ops\./, "")
    .replace(/^torch\._C\._nn\./, "")
    .replace(/\.default$/, "");
}
