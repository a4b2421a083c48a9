/** What is open: texts, comparisons and panels, and how they hear of each other. */

import { Age } from "../panels/age";
import { announce, h } from "../panels/dom";
import type { PanelName, Subject as PanelSubject } from "../panels/messages";
import type { Place, RunItem, StageItem } from "../protocol";
import { fileUri, nameOf, normal, pathOf, format, type Subject } from "./address";
import { diffView } from "./diffView";
import { tellFindings } from "./findings";
import { Links, type Linkable } from "./links";
import { copy, PanelFrame, tellAll, type Host } from "./panelFrame";
import { Panes, toolbar, type Column, type Tab } from "./panes";
import { baseName, panelTitle, type Opener } from "./runs";
import { report, request, runs } from "./server";
import { newestOf, runOf, stageBefore, stageOf, stageOfUri, textOf, titleOf, type Text } from "./stages";
import { TextView } from "./textView";
import { button, toast } from "./widgets";

interface TextTab extends Tab, Linkable {
  text: TextView;
  age: Age;
  /** A source file with the text of the run: the lines of findings are those of this text. */
  isAsItRan: boolean;
}

const CURSOR_DELAY_MS = 60;

export class Opened implements Opener, Host {
  readonly panes: Panes;
  onSubject: (subject: Subject) => void = () => undefined;
  private readonly frames = new Map<PanelFrame, Tab>();
  private readonly links = new Links(
    () => this.texts,
    () => this.panes.visible.filter(isText),
  );
  private cursorTimer: number | undefined;

  constructor(
    private readonly panels: ReadonlySet<PanelName>,
    empty: HTMLElement,
  ) {
    this.panes = new Panes(() => {
      const front = this.panes.front;
      if (front !== undefined) {
        this.onSubject(front.subject());
      }
      void this.links.colour();
    }, empty);
  }

  // --- what the address, another terminal or the tree asks for -------------------------------------------------------

  /** Shows what an address names. */
  async subject({ run, stage, file, line, panel, compile }: Subject): Promise<void> {
    const uri = file === undefined ? undefined : fileUri(file);
    const known = run ?? (uri === undefined ? (await runs())[0]?.run : await newestOf(uri));
    if (known === undefined) {
      throw new Error(uri === undefined ? "No run yet." : `No run has anything in ${baseName(file ?? "")} yet.`);
    }
    const at = Math.max(0, Number(line ?? "1") - 1) || 0;
    if (panel !== undefined && this.panels.has(panel)) {
      const title = `${panelTitle(panel)} · ${compile ?? stage ?? baseName((await report(known)).item.script)}`;
      this.panel(panel, { run: known, title, ...(compile && { compile }), ...(stage && { stage }) });
    } else if (stage !== undefined) {
      const found = await stageOf(known, stage);
      await this.show(known, found.uri, at, { title: titleOf(found) });
    } else if (uri !== undefined) {
      await this.show(known, uri, at, {});
    } else {
      await this.overview((await report(known)).item);
    }
  }

  /** The user's script, and beside it the run on one page. */
  async overview(item: RunItem): Promise<void> {
    const { compiles } = await report(item.run);
    const first = compiles.find(({ kernels }) => kernels.length > 0) ?? compiles[0];
    try {
      await this.show(item.run, item.scriptUri, first?.uri === item.scriptUri ? first.line : 0, { focus: false });
    } catch {
      // A script that is gone; what is known about the run is there.
    }
    this.panel("summary", { run: item.run, title: `${panelTitle("summary")} · ${baseName(item.script)}` });
  }

  /**
   * Puts what is open of a run aside for the same of a newer run of its script, if that has it; a stage that the newer
   * run has not stays.
   */
  async follow(item: RunItem, older: string): Promise<void> {
    const front = this.panes.front;
    const visible = this.panes.visible;
    const tabs = this.panes.all.filter((tab) => tab.subject().run === older);
    let shown = false;
    // What is in front comes last, so that it is in front again.
    for (const tab of tabs.sort((a, b) => rank(a) - rank(b))) {
      const column = this.panes.columnOf(tab);
      if (column !== undefined && (await this.again(item, tab, column))) {
        this.panes.close(tab);
        shown = true;
      }
    }
    if (!shown) {
      await this.overview(item);
    }

    function rank(tab: Tab): number {
      return tab === front ? 2 : visible.includes(tab) ? 1 : 0;
    }
  }

  /** Opens in a column what a tab shows, of another run; says whether there is such a thing. */
  private async again(item: RunItem, tab: Tab, column: Column): Promise<boolean> {
    const { stage, file, line, panel, compile } = tab.subject();
    const tree = await report(item.run);
    if (compile !== undefined && !tree.compiles.some(({ id }) => id === compile)) {
      return false;
    }
    try {
      const found = stage === undefined ? undefined : await stageOf(item.run, stage);
      if (panel !== undefined) {
        const about = { ...(compile && { compile }), ...(stage && { stage }) };
        this.panel(panel, { run: item.run, title: tab.title, ...about }, column);
        return true;
      }
      const uri = found?.uri ?? (file === undefined ? undefined : fileUri(file));
      if (uri === undefined) {
        return false; // A comparison is between two runs or stages that the user chose.
      }
      await this.show(item.run, uri, Number(line ?? 1) - 1, { title: tab.title, column, focus: false });
      return true;
    } catch {
      return false;
    }
  }

  /** A run has ended: texts of others may be of an older one now. */
  runEnded(): void {
    for (const { run, age } of this.texts) {
      void age.show(run);
    }
  }

  run(item: RunItem): void {
    void this.overview(item).catch(complain);
  }

  text(run: string, uri: string, line: number, title: string, beside: boolean): void {
    void this.show(run, uri, line, { title, preview: !beside, beside }).catch(complain);
  }

  panel(panel: PanelName, subject: PanelSubject, column?: Column): void {
    const key = JSON.stringify([panel, subject.run, subject.compile, subject.stage]);
    const known = this.panes.find(key);
    if (known !== undefined) {
      this.panes.bring(known);
      return;
    }
    const frame = new PanelFrame(panel, subject, this);
    const { run, compile, stage } = subject;
    const tab: Tab = {
      key,
      title: subject.title,
      icon: panel,
      tooltip: subject.title,
      element: frame.element,
      subject: () => ({ run, panel, ...(compile && { compile }), ...(stage && { stage }) }),
      focus: () => frame.focus(),
      dispose: () => {
        this.frames.delete(frame);
        frame.dispose();
      },
    };
    this.frames.set(frame, tab);
    this.panes.open(tab, column ?? this.columnForStages());
  }

  /** Ids of the rows of the tree that lead to what is shown. */
  pathInTree({ run, stage, panel, compile, file }: Subject): string[] {
    if (run === undefined) {
      return [];
    }
    if (panel !== undefined && panel !== "graph") {
      return compile === undefined
        ? [run, `${run}#${panel}`]
        : [run, `${run}/${compile}`, `${run}/${compile}#${panel}`];
    }
    const [frame, again] = (stage ?? "").split("/");
    if (stage !== undefined && again !== undefined) {
      return [run, `${run}/${frame}/${again}`, `${run}/${stage}`];
    }
    return file === undefined ? [run] : [run, `${run}#script`];
  }

  // --- what panels ask for --------------------------------------------------------------------------------------------

  open({ uri, line }: Place, from: PanelFrame, preserveFocus: boolean): void {
    const tab = this.frames.get(from);
    const column = tab && this.panes.columnOf(tab);
    const other = this.panes.columns.find((each) => each !== column) ?? this.panes.beside(column);
    const run = runOf(uri) ?? from.subject.run;
    void this.show(run, uri, line, { column: other, preview: true, focus: !preserveFocus }).catch(complain);
  }

  compare(left: string, right: string, title: string, from?: PanelFrame): void {
    const tab = from && this.frames.get(from);
    void this.diff(left, right, title, from?.subject.run ?? runOf(right) ?? "", tab && this.panes.columnOf(tab)).catch(
      complain,
    );
  }

  showPanel(panel: PanelName, subject: PanelSubject, from: PanelFrame): void {
    if (!this.panels.has(panel)) {
      toast("This panel is not built.", "error");
      return;
    }
    const tab = this.frames.get(from);
    this.panel(panel, subject, tab && this.panes.columnOf(tab));
  }

  title(title: string, from: PanelFrame): void {
    const tab = this.frames.get(from);
    if (tab !== undefined) {
      this.panes.rename(tab, title);
    }
  }

  // --- texts ----------------------------------------------------------------------------------------------------------

  private get texts(): TextTab[] {
    return this.panes.all.filter(isText);
  }

  private async show(
    run: string,
    uri: string,
    line: number,
    options: { title?: string; preview?: boolean; beside?: boolean; column?: Column; focus?: boolean },
  ): Promise<void> {
    const key = JSON.stringify(["text", run, normal(uri)]);
    const known = this.panes.find(key) as TextTab | undefined;
    if (known !== undefined) {
      this.panes.bring(known, options.focus ?? true);
      known.text.goTo(line, { focus: options.focus ?? true });
      return;
    }
    const isSource = runOf(uri) === undefined;
    const text = await textOf(run, uri);
    const stage = isSource ? undefined : await stageOfUri(run, uri);
    const title = options.title ?? (stage === undefined ? nameOf(uri) : titleOf(stage));
    const column =
      options.column ??
      (isSource ? this.panes.first() : options.beside ? this.panes.beside(this.panes.active) : this.columnForStages());
    const before = stage && (await stageBefore(run, stage));
    const tab = this.textTab(key, run, uri, title, text, stage, before);
    this.panes.open(tab, column, { preview: options.preview ?? false, focus: options.focus ?? true });
    tab.text.goTo(line, { focus: options.focus ?? true, quietly: line === 0 });
    announce(`${title}, ${tab.text.lines} lines`);
    if (tab.isAsItRan) {
      await tellFindings([{ run, uri, view: tab.text.view }]);
    }
  }

  /** A run has found more, or has ended. */
  findingsChanged(run: string): void {
    const sources = this.texts.filter((tab) => tab.run === run && tab.isAsItRan);
    void tellFindings(sources.map(({ uri, text }) => ({ run, uri, view: text.view })));
  }

  private textTab(
    key: string,
    run: string,
    uri: string,
    title: string,
    text: Text,
    stage?: StageItem,
    before?: StageItem,
  ): TextTab {
    const body = h("div", { class: "text" });
    const view = new TextView(body, {
      text: text.text,
      language: text.languageId,
      label: title,
      onCursor: (line) => this.cursor(tab, line),
    });
    const subject = (): Subject => ({
      run,
      ...(stage === undefined ? { file: pathOf(uri) } : { stage: stage.stage }),
      ...(view.line > 0 && { line: String(view.line + 1) }),
    });
    const age = new Age(request);
    void age.show(run);
    const bar = this.textToolbar(run, uri, title, text, subject, stage, before);
    const element = h("div", { class: "document" }, bar, age.element, body);
    const tab: TextTab = {
      key,
      run,
      uri,
      whole: text.text,
      text: view,
      isAsItRan: stage === undefined && text.current !== false,
      age,
      title,
      icon: stage === undefined ? "file" : stage.isGraph ? "graph" : stage.role === "kernel" ? "kernel" : "file",
      tooltip: stage === undefined ? pathOf(uri) : `${title}\n${stage.stage} of run ${run}`,
      element,
      subject,
      focus: () => view.view.focus(),
      shown: () => view.view.requestMeasure(),
      dispose: () => view.destroy(),
    };
    return tab;
  }

  private textToolbar(
    run: string,
    uri: string,
    title: string,
    text: Text,
    subject: () => Subject,
    stage?: StageItem,
    before?: StageItem,
  ): HTMLElement {
    return toolbar(
      `Actions on ${title}`,
      h("span", { class: "what" }, stage === undefined ? pathOf(uri) : stage.stage),
      text.current === false ? h("span", { class: "stale" }, "as it is now, not as it ran") : undefined,
      h("span", { class: "spacer" }),
      stage?.isGraph && this.panels.has("graph")
        ? button(
            "Show as graph",
            () => this.panel("graph", { run, stage: stage.stage, title: `Graph · ${title}` }),
            {},
            "graph",
          )
        : undefined,
      stage === undefined || before === undefined
        ? undefined
        : button(
            "Compare with the stage before",
            () => void this.diff(before.uri, stage.uri, `${before.title} ↔ ${stage.title}`, run).catch(complain),
            {},
            "compare",
          ),
      button("Copy a link to this line", () => void copy(`${window.location.origin}/${format(subject())}`), {}, "link"),
    );
  }

  private async diff(left: string, right: string, title: string, run: string, column?: Column): Promise<void> {
    const key = JSON.stringify(["diff", normal(left), normal(right)]);
    const known = this.panes.find(key);
    if (known !== undefined) {
      this.panes.bring(known);
      return;
    }
    const [before, after] = await Promise.all([left, right].map((uri) => textOf(runOf(uri) ?? run, uri)));
    if (before === undefined || after === undefined) {
      return;
    }
    const body = h("div", { class: "diff" });
    const view = diffView(
      body,
      { text: before.text, language: before.languageId, label: `Before: ${nameOf(left)}` },
      { text: after.text, language: after.languageId, label: `After: ${nameOf(right)}` },
    );
    const tab: Tab = {
      key,
      title,
      icon: "compare",
      tooltip: title,
      element: h(
        "div",
        { class: "document" },
        toolbar(`Actions on ${title}`, h("span", { class: "what" }, `${nameOf(left)} ↔ ${nameOf(right)}`)),
        body,
      ),
      subject: () => ({ run }),
      focus: () => view.b.focus(),
      shown: () => [view.a, view.b].forEach((each) => each.requestMeasure()),
      dispose: () => view.destroy(),
    };
    this.panes.open(tab, column ?? this.columnForStages());
  }

  /** Stages and panels go beside the source, so that both are seen. */
  private columnForStages(): Column {
    const first = this.panes.first();
    const active = this.panes.active;
    return active !== undefined && active !== first && this.panes.columns.includes(active)
      ? active
      : first.tabs.length === 0
        ? first
        : this.panes.beside(first);
  }

  /** The cursor of a text came to a line: its counterparts are marked in the others, and panels hear of it. */
  private cursor(tab: TextTab, line: number): void {
    window.clearTimeout(this.cursorTimer);
    this.cursorTimer = window.setTimeout(() => {
      if (this.panes.front === tab) {
        this.onSubject(tab.subject());
      }
      tellAll({ type: "cursor", place: { uri: tab.uri, line } });
      void this.links.mark(tab, line);
    }, CURSOR_DELAY_MS);
  }
}

function isText(tab: Tab): tab is TextTab {
  return "text" in tab;
}

function complain(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), "error");
}
