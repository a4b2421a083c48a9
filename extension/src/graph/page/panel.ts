/** One graph in the panel: how it is folded, what is open, selected and sought. */

import { open as openPlace, recall, remember } from "../../panels/bridge";
import { Arranger } from "./arranger";
import { childClusters, fold, pathOf, type Cluster, type Forest } from "../model/clusters";
import { colouring, type ColourMode, type Colouring } from "../draw/colours";
import { showDetails, showPath, type Ways } from "./details";
import * as units from "../../units";
import { Labels } from "../draw/labels";
import type { Shown } from "./exporting";
import { farFrom } from "../layout/far";
import type { Layouter } from "../layout/layout";
import { showLegend } from "./legend";
import { CALL, SAME, type Model } from "../model/model";
import { groupings, type Grouping } from "../model/grouping";
import { closedAround, mainFirst, openAtFirst } from "./opening";
import { described } from "./outline";
import { setText } from "../../panels/dom";
import type { Page } from "./page";
import { boxOf, type Box } from "../layout/scene";
import { Search } from "../model/search";
import type { State } from "./state";
import { readTheme, type Theme } from "../draw/theme";
import { GraphView } from "./view";

/** As much as can be read where all of it is in view; changes are shown even where not all of it is. */
const BOXES_AT_FIRST = 24;
const CHANGES_AT_FIRST = 110;
const MOST_BOXES = 1500;
const MOST_BELOW = 400;
/** Lines with more nodes than this are not looked for one by one. */
const MOST_LANDED = 40;

export class GraphPanel {
  readonly view: GraphView;
  readonly search: Search;
  private forest: Forest;
  private labels: Labels;
  private colours: Colouring;
  private theme: Theme = readTheme();
  private open: Set<number>;
  private selected: number | undefined;
  private readonly arranger: Arranger;

  constructor(
    private readonly page: Page,
    readonly model: Model,
    private readonly layouter: Layouter,
    view: GraphView | undefined,
  ) {
    const state = recall<State>();
    this.view = view ?? new GraphView(page, (at) => remember<State>({ view: at }));
    this.view.clear();
    this.layouter.clear();
    model.chooseTarget(state.target ?? model.graph.ranOn);
    this.arranger = new Arranger(page, this.view, layouter, () => {
      void this.arrange().then(() => this.view.camera.start());
    });
    this.forest = this.fold();
    this.open = this.openAtFirst();
    this.colours = this.colour(state.colour ?? (model.compared ? "change" : "operation"));
    this.labels = new Labels(model, this.forest, this.theme, this.colours);
    this.search = new Search(model, this.forest);
    this.search.start(state.search ?? "");
  }

  /** The first picture. */
  async begin(): Promise<void> {
    const state = recall<State>();
    const itemsByKey = new Map(this.forest.clusters.slice(1).map((cluster) => [cluster.key, cluster.item]));
    if (state.open !== undefined && state.open.length > 0) {
      this.open = new Set([this.forest.root.item, ...state.open.flatMap((key) => itemsByKey.get(key) ?? [])]);
    }
    const { selected = "", view } = state; // Kept before the first picture changes them.
    this.dress();
    await this.arrange();
    this.view.camera.restore(view);
    const item = itemsByKey.get(selected) ?? this.model.graph.nodes.name.indexOf(selected);
    this.select(item >= 0 ? item : undefined, { reveals: false });
    this.showSearch();
  }

  // --- what is shown -------------------------------------------------------------------------------------------------

  setGrouping(grouping: Grouping): Promise<void> {
    remember<State>({ grouping, open: [] });
    return this.refold();
  }

  /** What was chosen, as far as this graph has it. */
  get grouping(): Grouping {
    const can = groupings(this.model);
    const wanted = recall<State>().grouping;
    return wanted !== undefined && can.includes(wanted) ? wanted : (can[0] ?? "order");
  }

  /** The device that times are estimated for, by its name. */
  setTarget(name: string): void {
    remember<State>({ target: name });
    this.model.chooseTarget(name);
    this.setColour(this.colours.mode);
    this.showSelection();
  }

  setColour(mode: ColourMode): void {
    remember<State>({ colour: mode });
    this.colours = this.colour(mode);
    this.dress();
  }

  /** The kernels of the nodes are known now. */
  async kernelsCame(): Promise<void> {
    if (recall<State>().colour === "kernel") {
      this.setColour("kernel");
    }
    if (this.grouping === "kernel") {
      await this.refold();
    }
    this.showSelection();
  }

  themeChanged(): void {
    this.theme = readTheme();
    this.colours = this.colour(this.colours.mode);
    this.dress();
  }

  async onlyMatches(only: boolean): Promise<void> {
    remember<State>({ only });
    await this.refold();
  }

  private colour(mode: ColourMode): Colouring {
    return colouring(this.model, mode === "change" && !this.model.compared ? "operation" : mode, this.theme.lightness);
  }

  private fold(): Forest {
    const { grouping } = this;
    const isCut = recall<State>().only === true && this.search !== undefined && this.search.matches.length > 0;
    // Until the kernels are known, and if there are none, modules are the best grouping.
    const hasKernels = this.model.kernelCalls !== undefined;
    const possible = grouping === "kernel" && !hasKernels ? (groupings(this.model)[0] ?? "order") : grouping;
    return fold(this.model, possible, isCut ? (node) => this.search.has(node) : undefined);
  }

  private async refold(): Promise<void> {
    this.forest = this.fold();
    this.layouter.clear();
    this.search.refold(this.forest);
    this.open = this.openAtFirst();
    this.view.clear();
    this.dress();
    await this.arrange();
    this.view.camera.start();
    this.select(this.selected !== undefined && this.selected < this.model.count ? this.selected : undefined);
    this.showSearch();
  }

  private dress(): void {
    this.labels = new Labels(this.model, this.forest, this.theme, this.colours);
    this.view.dress(this.theme, this.labels, this.colours);
    showLegend(this.page.legend, this.colours, this.labels.composition(this.forest.root.item));
    const edges = this.model.graph.edges.length / 2;
    setText(this.page.summary, `${units.count(this.model.count, "node")}, ${units.count(edges, "edge")}`);
  }

  private openAtFirst(): Set<number> {
    const { model, forest } = this;
    const changes = (cluster: Cluster): number =>
      this.nodesOf(cluster).reduce((all, node) => all + Number(model.state(node) !== SAME), 0);
    return model.compared
      ? openAtFirst(forest, model.count, CHANGES_AT_FIRST, changes)
      : openAtFirst(forest, model.count, BOXES_AT_FIRST);
  }

  private nodesOf({ first, last }: Cluster): Uint32Array {
    return this.forest.order.subarray(first, last);
  }

  /** Lays out what is open and shows it. What was shown stays where this is cancelled. */
  private async arrange(still?: number): Promise<void> {
    const { forest, model, labels } = this;
    const outcome = await this.arranger.arrange(model, forest, this.open, labels, still);
    if (outcome === "shown") {
      this.showSelection();
      const keys = [...this.open].flatMap((item) =>
        item === forest.root.item ? [] : (forest.clusters[item - model.count]?.key ?? []),
      );
      remember<State>({ open: keys });
    } else if (outcome === "as before") {
      const shown = [...(this.view.scene?.byItem.values() ?? [])];
      this.open = new Set([forest.root.item, ...shown.flatMap((box) => (box.isOpen ? box.item : []))]);
    }
  }

  // --- clusters ------------------------------------------------------------------------------------------------------

  async toggle(item: number): Promise<void> {
    if (this.open.has(item)) {
      this.open.delete(item);
    } else {
      this.open.add(item);
    }
    this.select(item, { reveals: false });
    await this.arrange(item);
  }

  async expandAll(): Promise<void> {
    const { forest, model } = this;
    this.open = openAtFirst(forest, model.count, MOST_BOXES, ({ first, last }) => last - first);
    const all = forest.clusters.length;
    if (this.open.size < all) {
      const text = `${this.open.size} of ${all} clusters are open: all at once would be too much to draw. Open others by hand.`;
      setText(this.page.announcement, text);
    }
    await this.arrange(this.selected);
  }

  async collapseAll(): Promise<void> {
    this.open = new Set([this.forest.root.item]);
    const top = this.selected === undefined ? undefined : pathOf(this.forest, this.model.count, this.selected)[0]?.item;
    this.select(top ?? this.selected, { reveals: false });
    await this.arrange();
    this.view.camera.fit();
  }

  async expandBelow(item: number): Promise<void> {
    const cluster = this.forest.clusters[item - this.model.count];
    if (cluster !== undefined) {
      let shown = 0;
      for (let level = [cluster]; level.length > 0;) {
        for (const { children, item: opened } of level) {
          shown += children.length;
          if (shown <= MOST_BELOW) {
            this.open.add(opened);
          }
        }
        level =
          shown <= MOST_BELOW ? level.flatMap((parent) => childClusters(this.forest, this.model.count, parent)) : [];
      }
      await this.arrange(item);
    }
  }

  // --- the selection -------------------------------------------------------------------------------------------------

  get selectedBox(): Box | undefined {
    return this.selected === undefined ? undefined : this.view.scene?.byItem.get(this.selected);
  }

  select(item: number | undefined, { reveals = true } = {}): void {
    this.selected = item;
    const cluster = this.forest.clusters[(item ?? -1) - this.model.count];
    remember<State>({ selected: item === undefined ? "" : (cluster?.key ?? this.model.name(item)) });
    this.showSelection();
    const box = this.selectedBox;
    if (box !== undefined) {
      setText(this.page.announcement, described(box, this.labels));
      if (reveals) {
        this.view.camera.reveal(box);
      }
    }
  }

  /** Opens whatever a node is in, and selects it. */
  async find(node: number): Promise<void> {
    const closed = pathOf(this.forest, this.model.count, node).filter(({ item }) => !this.open.has(item));
    if (closed.length > 0) {
      closed.forEach(({ item }) => this.open.add(item));
      await this.arrange();
    }
    this.select(node);
  }

  /** Selects the first node of some lines that computes, opens what they all are in, and highlights them. */
  async land(uri: string, lines: number[]): Promise<void> {
    const nodes = mainFirst(this.model, [...new Set(lines.flatMap((line) => this.model.nodesAt(uri, line)))]);
    const [first] = nodes;
    if (first === undefined) {
      return;
    }
    // What the call of a whole model became stays folded.
    if (nodes.length <= MOST_LANDED) {
      const closed = closedAround(this.forest, this.model.count, nodes, this.open, MOST_BELOW);
      if (closed.length > 0) {
        closed.forEach((item) => this.open.add(item));
        await this.arrange();
      }
      this.select(first);
    }
    this.highlight(nodes);
  }

  /** Highlights what came from a line of the user's file, or is in a line of the stage. */
  link(uri: string, line: number): void {
    this.highlight(this.model.nodesAt(uri, line));
  }

  private highlight(nodes: number[]): void {
    const { scene, camera } = this.view;
    if (scene !== undefined) {
      const boxes = new Set(nodes.flatMap((node) => boxOf(scene, this.forest, node) ?? []));
      // Where nearly all came from one line, as from the call of a model, an outline tells nothing apart.
      this.view.mark({ linked: nodes.length > MOST_LANDED && nodes.length > this.model.count / 2 ? new Set() : boxes });
      this.page.canvas.dataset["linked"] = String(boxes.size);
      const [first] = boxes;
      if (
        first !== undefined &&
        ![...boxes].some((box) => camera.shows(box)) &&
        document.visibilityState === "visible"
      ) {
        camera.reveal(first);
      }
    }
  }

  private showSelection(): void {
    const box = this.selectedBox;
    this.view.mark({
      selected: box,
      far: box === undefined ? [] : farFrom(box, this.view.scene, this.forest, this.model),
      current: this.currentBox,
    });
    showDetails(this.page, this.model, this.labels, box, this.ways);
    showPath(this.page, this.forest, this.model, box, this.ways);
  }

  readonly ways: Ways = {
    goToSource: (node) => {
      const origin = this.model.origin(node);
      if (origin === undefined) {
        setText(this.page.announcement, "PyTorch gives no source line for this node.");
      } else {
        openPlace(origin);
      }
    },
    goToStage: (node) => openPlace(this.model.stagePlace(node)),
    goToKernel: (call) => {
      const place = this.model.kernelCalls?.[call]?.place;
      if (place !== undefined && place !== null) {
        openPlace(place);
      }
    },
    select: (node) => void this.find(node),
    selectCluster: (item) => this.select(item),
    expandBelow: (item) => void this.expandBelow(item),
    toggle: (item) => void this.toggle(item),
  };

  /** Enter on the selection: a node leads to its line. */
  activate(): void {
    const box = this.selectedBox;
    if (box?.cluster !== undefined) {
      void this.toggle(box.item);
    } else if (box !== undefined) {
      this.ways.goToSource(box.item);
    }
  }

  showKernel(): void {
    const [call] =
      this.selected === undefined || this.selected >= this.model.count ? [] : this.model.kernels(this.selected);
    if (call !== undefined) {
      this.ways.goToKernel(call);
    } else if (
      this.selected !== undefined &&
      this.selected < this.model.count &&
      this.model.kind(this.selected) === CALL
    ) {
      setText(this.page.announcement, "This node is not part of a kernel.");
    }
  }

  // --- search --------------------------------------------------------------------------------------------------------

  private get currentBox(): Box | undefined {
    const { scene } = this.view;
    return scene === undefined || this.search.current === undefined
      ? undefined
      : boxOf(scene, this.forest, this.search.current);
  }

  showSearch(): void {
    const { search, forest, model } = this;
    const matches = (box: Box): number =>
      box.cluster !== undefined
        ? search.countIn(box.cluster.first, box.cluster.last)
        : box.item < model.count && forest.place[box.item] !== -1 && search.has(box.item)
          ? 1
          : 0;
    this.view.mark({ matches: search.isOn ? matches : undefined, current: this.currentBox });
  }

  // --- export --------------------------------------------------------------------------------------------------------

  get shown(): Shown {
    const { model, forest, view, theme, labels, colours } = this;
    return { model, forest, view, theme, labels, colours };
  }
}
