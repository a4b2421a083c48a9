/** What changed since an earlier run of the same script: findings, compiles, kernels, seconds. */

import * as bridge from "../bridge";
import { button, h, rich, select } from "../dom";
import type { Subject } from "../messages";
import type { ChangedCompile, ChangedFinding, ChangedKernel, Changes } from "../results";
import { Loader, notice, placeLink, runButton, seconds, type View } from "../view";
import { plural, time } from "../../format";

type Sign = "gone" | "new" | "changed";
const SIGNS: Record<Sign, string> = { gone: "−", new: "+", changed: "~" };

export function createChanges(): View {
  const toolbar = h("div", { class: "toolbar" });
  const body = h("div", { class: "body scroll" });
  const element = h("section", { class: "view" }, toolbar, body);
  let subject: Subject | undefined;
  let since: string | undefined;
  const loader = new Loader<Changes>(body, "the changes", draw);

  function load(): void {
    if (subject !== undefined) {
      void loader.load("irscope/changes", { run: subject.run, ...(since === undefined ? {} : { since }) });
    }
  }

  function draw(result: Changes): void {
    const { since: older } = result;
    toolbar.replaceChildren();
    if (older === null) {
      body.replaceChildren(notice("Nothing to compare with.", result.reason, runButton()));
      return;
    }
    const options = result.older.map((run) => ({
      value: run.run,
      text: `${time(run.started)} · ${plural(run.findings, "finding")} · ${seconds(run.seconds)}`,
    }));
    toolbar.append(
      h("span", { class: "dim" }, "since"),
      select("Since the run", options, older.run, (run) => {
        since = run;
        load();
      }),
      h("span", { class: "summary", attributes: { role: "status" } }, result.summary),
    );
    const sections = [
      section("Findings", result.findingsKept, "kept", [
        ...result.findingsGone.map((finding) => findingRow("gone", finding)),
        ...result.findingsNew.map((finding) => findingRow("new", finding)),
      ]),
      section("Compiles", result.compilesSame, "the same", [
        ...result.compilesGone.map((compile) => compileRow("gone", compile)),
        ...result.compilesNew.map((compile) => compileRow("new", compile)),
        ...result.compilesChanged.map((compile) => compileRow("changed", compile)),
      ]),
      section("Kernels", result.kernelsKept, "kept", [
        ...result.kernelsGone.map((kernel) => kernelRow("gone", kernel)),
        ...result.kernelsNew.map((kernel) => kernelRow("new", kernel)),
        ...result.kernelsChanged.map((kernel) => kernelRow("changed", kernel)),
      ]),
    ];
    body.replaceChildren(
      ...(result.reason === "" ? [] : [h("p", { class: "same" }, result.reason)]),
      h("div", { class: "columns" }, times(result), ...sections),
    );
  }

  return {
    element,
    show(given) {
      if (given.run !== subject?.run) {
        since = undefined;
        subject = given;
        load();
      }
    },
    refresh: load,
    focus() {
      element.querySelector<HTMLElement>("select, button")?.focus();
    },
  };
}

function section(title: string, kept: number, word: string, rows: HTMLElement[]): HTMLElement {
  return h(
    "section",
    { class: "changes" },
    h("h2", {}, title, h("span", { class: "dim" }, ` ${kept} ${word}`)),
    rows.length > 0 ? h("ul", {}, ...rows) : h("p", { class: "dim" }, "No change."),
  );
}

function times({ compileSeconds, seconds: whole }: Changes): HTMLElement {
  const rows: HTMLElement[] = [];
  for (const [title, pair] of [
    ["compile time", compileSeconds],
    ["the whole run", whole],
  ] as const) {
    if (pair !== null) {
      const [before, after] = pair;
      const by = after - before;
      const most = Math.max(before, after, 1e-9);
      rows.push(
        h(
          "div",
          { class: "time-change" },
          h(
            "span",
            {},
            title,
            " ",
            h("strong", { class: by <= 0 ? "better" : "worse" }, `${by <= 0 ? "−" : "+"}${seconds(Math.abs(by))}`),
          ),
          h("span", { class: "bar before", style: { "--share": String(before / most) } }, seconds(before)),
          h("span", { class: "bar after", style: { "--share": String(after / most) } }, seconds(after)),
        ),
      );
    }
  }
  return h(
    "section",
    { class: "changes" },
    h("h2", {}, "Time", h("span", { class: "dim" }, " before and now")),
    ...rows,
  );
}

/** `better`: a finding that is gone; of kernels and compiles neither is. */
function row(sign: Sign, word: string, tone: string, ...children: (HTMLElement | string | false)[]): HTMLElement {
  return h(
    "li",
    { class: tone },
    h("span", { class: "sign", title: word, attributes: { role: "img", "aria-label": word } }, SIGNS[sign]),
    h("div", {}, ...children),
  );
}

function findingRow(sign: "gone" | "new", finding: ChangedFinding): HTMLElement {
  return row(
    sign,
    sign === "gone" ? "fixed" : "new",
    sign === "gone" ? "better" : "worse",
    h("strong", {}, finding.title),
    " ",
    h("code", {}, finding.code),
    " ",
    // The line of a finding that is gone is one of the older text.
    sign === "new"
      ? placeLink(finding.place)
      : h("span", { class: "dim" }, `was at ${placeLink(finding.place).textContent ?? ""}`),
    h("div", { class: "message" }, ...rich(finding.message)),
  );
}

function compileRow(sign: Sign, compile: ChangedCompile): HTMLElement {
  return row(
    sign,
    sign,
    "",
    h("code", {}, compile.id),
    ` ${compile.function} `,
    compile.place.uri !== "" && sign !== "gone" && placeLink(compile.place),
    h("div", { class: "dim" }, compile.what),
    compile.stages.length > 0 &&
      h(
        "div",
        { class: "chips" },
        ...compile.stages.map(({ title, left, right }) =>
          button(title, () => bridge.compare(left, right, `${title}: before ↔ now`), {
            class: "small",
            attributes: { "aria-label": `Compare ${title} before and now` },
            title: "Compare before and now",
          }),
        ),
      ),
  );
}

function kernelRow(sign: Sign, kernel: ChangedKernel): HTMLElement {
  return row(
    sign,
    sign,
    "",
    kernel.uri === "" ? h("code", {}, kernel.name) : placeLink({ uri: kernel.uri, line: 0 }, kernel.name),
    h("span", { class: "dim" }, ` ${kernel.language} · ${kernel.compile} `),
    kernel.other !== "" &&
      button("Compare", () => bridge.compare(kernel.other, kernel.uri, `${kernel.name}: before ↔ now`), {
        class: "small",
        attributes: { "aria-label": `Compare ${kernel.name} before and now` },
      }),
  );
}
