/** The tree *run → compile → stages and kernels*. */

import * as vscode from "vscode";
import { sameUri } from "./documents";
import { headingsOf, isWorthHeadings, type Heading } from "../headings";
import { isScript, rowsOf } from "../runGroups";
import type { CompileItem, Place, RunItem, RunTree } from "../protocol";
import { ReportRequest, RunsRequest } from "./requests";
import { itemOf, type Element } from "./runItems";
import { ServerUnavailable, type Server } from "./server";

/** Many changes come in a row while a script runs. */
const REFRESH_DELAY_MS = 200;

export class RunsTree implements vscode.TreeDataProvider<Element>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Element | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Element>;
  private readonly subscriptions: vscode.Disposable[] = [];
  /** By run: where the compiles of a run are listed. */
  private readonly runs = new Map<string, Element & { kind: "run" }>();
  private readonly reports = new Map<string, RunTree>();
  private refreshTimer: NodeJS.Timeout | undefined;

  constructor(private readonly server: Server) {
    this.view = vscode.window.createTreeView("irscope.runs", { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions.push(
      this.view,
      this.changed,
      server.onDidChangeRuns(({ run }) => {
        this.reports.delete(run);
        this.refreshSoon();
      }),
      server.onDidChangeState(() => this.refresh()),
    );
  }

  refresh(): void {
    this.reports.clear();
    this.changed.fire(undefined);
  }

  /** Reveals a run, and in it the compile that starts at `line` of `uri` when there is one. */
  async reveal(run: string, place?: Place): Promise<void> {
    // A refresh in the middle would make the editor lose the element, so a pending one is waited for.
    while (this.refreshTimer !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, REFRESH_DELAY_MS));
    }
    try {
      await this.tryToReveal(run, place);
    } catch {
      await this.tryToReveal(run, place); // A script that runs now changes the tree at any moment.
    }
  }

  async getChildren(element?: Element): Promise<Element[]> {
    try {
      return await this.children(element);
    } catch (error) {
      if (error instanceof ServerUnavailable) {
        return []; // The empty view says what to do.
      }
      throw error;
    }
  }

  getParent(element: Element): Element | undefined {
    switch (element.kind) {
      case "script":
        return undefined;
      case "run":
        return element.parent;
      case "compile":
      case "gaps":
        return this.runs.get(element.run.run);
      default:
        return element.parent;
    }
  }

  getTreeItem(element: Element): vscode.TreeItem {
    return itemOf(element);
  }

  dispose(): void {
    clearTimeout(this.refreshTimer);
    this.subscriptions.forEach((each) => void each.dispose());
  }

  private async tryToReveal(run: string, place?: Place): Promise<void> {
    await this.getChildren();
    const found = this.runs.get(run);
    if (found === undefined) {
      void vscode.window.showInformationMessage(
        vscode.l10n.t("This run is no longer in the store. Save the file to run it again."),
      );
      return;
    }
    const compiles = place === undefined ? [] : await this.getChildren(found);
    const compile = compiles.find(
      (each) => each.kind === "compile" && each.item.line === place?.line && sameUri(each.item.uri, place.uri),
    );
    await this.view.reveal(compile ?? found, { select: true, focus: true, expand: true });
  }

  private refreshSoon(): void {
    this.refreshTimer ??= setTimeout(() => {
      this.refreshTimer = undefined;
      this.changed.fire(undefined);
    }, REFRESH_DELAY_MS);
  }

  private async children(element?: Element): Promise<Element[]> {
    switch (element?.kind) {
      case undefined: {
        const { runs } = await this.server.request(RunsRequest, { eachPipeline: true });
        return this.rows(runs);
      }
      case "script":
        return childrenOfScript(element, this.runs);
      case "earlier":
        return element.items.flatMap(({ run }) => this.runs.get(run) ?? []);
      case "run":
        return this.childrenOfRun(element, await this.report(element.item.run));
      case "compile":
        return childrenOfCompile(element, element.item);
      case "heading":
        return childrenOfHeading(element, element.item);
      case "gaps":
        return element.items.map((item) => ({ kind: "gap", item, parent: element }));
      default:
        return [];
    }
  }

  private rows(runs: RunItem[]): Element[] {
    this.runs.clear();
    return rowsOf(runs).map((row) => {
      if (isScript(row)) {
        const script: Element = { kind: "script", item: row };
        const earlier: Element = { kind: "earlier", items: row.earlier, parent: script };
        row.newest.forEach((item) => this.runs.set(item.run, { kind: "run", item, parent: script }));
        row.earlier.forEach((item) => this.runs.set(item.run, { kind: "run", item, parent: earlier }));
        return script;
      }
      const run = { kind: "run", item: row } as const;
      this.runs.set(row.run, run);
      return run;
    });
  }

  private childrenOfRun(run: Element & { kind: "run" }, tree: RunTree): Element[] {
    const compiles: Element[] = tree.compiles.map((item) => ({ kind: "compile", run: run.item, item }));
    if (compiles.length === 0 && run.item.outcome !== null) {
      const text = run.item.message || vscode.l10n.t("Nothing was compiled in this run.");
      compiles.push({ kind: "note", text, icon: "info", parent: run });
    }
    return tree.gaps.length === 0 ? compiles : [...compiles, { kind: "gaps", items: tree.gaps, run: run.item }];
  }

  private async report(run: string): Promise<RunTree> {
    const known = this.reports.get(run);
    if (known !== undefined) {
      return known;
    }
    const tree = await this.server.request(ReportRequest, { run });
    if (tree.item.outcome !== null) {
      this.reports.set(run, tree);
    }
    return tree;
  }
}

function childrenOfScript(script: Element & { kind: "script" }, runs: ReadonlyMap<string, Element>): Element[] {
  const newest = script.item.newest.flatMap(({ run }) => runs.get(run) ?? []);
  const { earlier } = script.item;
  return earlier.length === 0 ? newest : [...newest, { kind: "earlier", items: earlier, parent: script }];
}

function childrenOfCompile(parent: Element, compile: CompileItem): Element[] {
  const headings = headingsOf(compile);
  if (isWorthHeadings(headings)) {
    return headings.map((item) => ({ kind: "heading", item, parent }));
  }
  const children = headings.flatMap((heading) => childrenOfHeading(parent, heading));
  return children.length > 0
    ? children
    : [{ kind: "note", text: vscode.l10n.t("No stage was captured."), icon: "info", parent }];
}

function childrenOfHeading(parent: Element, { stages, kernels }: Heading): Element[] {
  return [
    ...stages.map((item) => ({ kind: "stage", item, parent }) as const),
    ...kernels.map((item) => ({ kind: "kernel", item, parent }) as const),
  ];
}
