/** What changed since an earlier run of the same script: findings, compiles, kernels, seconds. */

import * as bridge from "../bridge";
import { button, h, rich, select } from "../dom";
import { phaseTitle } from "../measures/tree";
import { TreeView } from "../measures/treeView";
import type { Subject } from "../messages";
import type { ChangedChoice, ChangedCompile, ChangedFinding, ChangedKernel, Changes, MeasureTree } from "../results";
import { Loader, notice, placeLink, runButton, type View } from "../view";
import {
  lineChange,
  olderRuns,
  sectionsOf,
  SIGNS,
  timeChanges,
  wasAt,
  wordOf,
  type Change,
  type Section,
  type TimeChange,
} from "./model";

export function create(): View {
  return new ChangesView();
}

class ChangesView implements View {
  private readonly toolbar = h("div", { class: "toolbar" });
  private readonly body = h("div", { class: "body scroll" });
  readonly element = h("section", { class: "view" }, this.toolbar, this.body);
  private readonly time = new TreeView({
    title: "Change of compile time",
    noun: ["phase", "phases"],
    titleOf: phaseTitle,
  });
  private readonly memory = new TreeView({ title: "Change of memory", noun: ["module", "modules"] });
  private subject: Subject | undefined;
  private since: string | undefined;
  private readonly loader = new Loader<Changes>(this.body, "the changes", (result) => this.draw(result));

  show(given: Subject): void {
    if (given.run !== this.subject?.run) {
      this.since = undefined;
      this.subject = given;
      this.refresh();
    }
  }

  refresh(): void {
    const { subject, since } = this;
    if (subject !== undefined) {
      void this.loader.load("irscope/changes", { run: subject.run, ...(since === undefined ? {} : { since }) });
    }
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("select, button")?.focus();
  }

  private choice(runs: { value: string; text: string }[], chosen: string): HTMLElement {
    const choose = (run: string) => {
      this.since = run === "" ? undefined : run;
      this.refresh();
    };
    return h("label", {}, h("span", { class: "dim" }, "since "), select("Since the run", runs, chosen, choose));
  }

  private draw(result: Changes): void {
    this.toolbar.replaceChildren();
    if (result.since === null) {
      if (result.older.length > 0) {
        // The runs of other pipelines: none of them is chosen by itself.
        this.toolbar.append(this.choice([{ value: "", text: "choose a run…" }, ...olderRuns(result)], ""));
      }
      this.body.replaceChildren(notice("Nothing to compare with.", result.reason, runButton()));
      return;
    }
    this.toolbar.append(
      this.choice(olderRuns(result), result.since.run),
      h("span", { class: "summary", role: "status" }, result.summary),
    );
    this.body.replaceChildren(
      ...(result.reason === "" ? [] : [h("p", { class: "same" }, result.reason)]),
      h("div", { class: "columns" }, times(timeChanges(result)), ...sectionsOf(result).map(section)),
      ...changedTree("Compile Time by Phase", result.time, this.time),
      ...changedTree("Memory by Module", result.memory, this.memory),
    );
    this.time.draw();
    this.memory.draw();
  }
}

/** Empty if nothing changed. */
function changedTree(title: string, tree: MeasureTree, view: TreeView): HTMLElement[] {
  view.take(tree);
  return tree.rows.length > 1 ? [h("section", { class: "changes" }, h("h2", {}, title), view.element)] : [];
}

function section({ title, kept, rows }: Section): HTMLElement {
  return h(
    "section",
    { class: "changes" },
    h("h2", {}, title, h("span", { class: "dim" }, ` ${kept}`)),
    rows.length > 0 ? h("ul", {}, ...rows.map(row)) : h("p", { class: "dim" }, "No change."),
  );
}

function times(changes: TimeChange[]): HTMLElement {
  const rows = changes.map(({ title, by, isBetter, before, after }) =>
    h(
      "div",
      { class: "time-change" },
      h("span", {}, title, " ", h("strong", { class: isBetter ? "better" : "worse" }, by)),
      h("span", { class: "bar before", style: { "--share": String(before.share) } }, before.text),
      h("span", { class: "bar after", style: { "--share": String(after.share) } }, after.text),
    ),
  );
  return h(
    "section",
    { class: "changes" },
    h("h2", {}, "Time", h("span", { class: "dim" }, " before and now")),
    ...rows,
  );
}

function row(change: Change): HTMLElement {
  const { word, tone } = wordOf(change);
  const sign = { class: "sign", title: word, role: "img", "aria-label": word };
  return h("li", { class: tone }, h("span", sign, SIGNS[change.sign]), h("div", {}, ...told(change)));
}

type Told = HTMLElement | string | false;

function told(change: Change): Told[] {
  switch (change.what) {
    case "finding":
      return findingText(change.item, change.sign === "gone");
    case "compile":
      return compileText(change.item, change.sign === "gone");
    case "kernel":
      return kernelText(change.item);
    case "line":
      return [placeLink(change.item.place), h("span", { class: "dim" }, ` ${lineChange(change.item)}`)];
    case "choice":
      return choiceText(change.item);
  }
}

function findingText(finding: ChangedFinding, isGone: boolean): Told[] {
  return [
    h("strong", {}, finding.title),
    " ",
    h("code", {}, finding.code),
    " ",
    isGone ? h("span", { class: "dim" }, wasAt(finding)) : placeLink(finding.place),
    h("div", { class: "message" }, ...rich(finding.message)),
  ];
}

function compileText(compile: ChangedCompile, isGone: boolean): Told[] {
  const stages = compile.stages.map(({ title, left, right }) =>
    button(title, () => bridge.compare(left, right, `${title}: before ↔ now`), {
      class: "small",
      "aria-label": `Compare ${title} before and now`,
      title: "Compare before and now",
    }),
  );
  return [
    h("code", {}, compile.id),
    ` ${compile.function} `,
    compile.place.uri !== "" && !isGone && placeLink(compile.place),
    h("div", { class: "dim" }, compile.what),
    stages.length > 0 && h("div", { class: "chips" }, ...stages),
  ];
}

function choiceText({ operator, place, before, after }: ChangedChoice): Told[] {
  return [
    h("code", {}, operator),
    " ",
    place.uri !== "" && placeLink(place),
    h("div", { class: "dim" }, `before: ${before}`),
    h("div", { class: "dim" }, `now: ${after}`),
  ];
}

function kernelText(kernel: ChangedKernel): Told[] {
  return [
    kernel.uri === "" ? h("code", {}, kernel.name) : placeLink({ uri: kernel.uri, line: 0 }, kernel.name),
    h("span", { class: "dim" }, ` ${kernel.language} · ${kernel.compile} `),
    kernel.other !== "" &&
      button("Compare", () => bridge.compare(kernel.other, kernel.uri, `${kernel.name}: before ↔ now`), {
        class: "small",
        "aria-label": `Compare ${kernel.name} before and now`,
      }),
  ];
}
