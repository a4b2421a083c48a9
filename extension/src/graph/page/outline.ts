/**
 * The picture for those who do not see it: a tree of the clusters around the selection and of what is beside it.
 * Each entry lies over the box that it names, so that a magnifier finds it; the canvas beneath gets the mouse.
 */

import * as units from "../../units";
import type { Labels } from "../draw/labels";
import type { View } from "../draw/painter";
import { h } from "../../panels/dom";
import type { Box, Scene } from "../layout/scene";

/** If there are very many siblings, only those around the selection are entries. */
const MOST = 80;

export class Outline {
  private entries = new Map<HTMLElement, Box>();

  constructor(private readonly tree: HTMLElement) {}

  show(scene: Scene, labels: Labels, selected: Box | undefined): void {
    const above: Box[] = [];
    for (let at = selected?.parent; at !== undefined && at.parent !== undefined; at = at.parent) {
      above.unshift(at);
    }
    const siblings = (selected?.parent ?? scene.root).children;
    const at = Math.max(0, selected === undefined ? 0 : siblings.indexOf(selected));
    const begin = Math.max(0, Math.min(at - MOST / 2, siblings.length - MOST));
    const shown = siblings.slice(begin, begin + MOST);

    this.entries = new Map();
    for (const box of above) {
      this.add(box, labels, selected, box.parent?.children ?? []);
    }
    for (const box of shown) {
      this.add(box, labels, selected, siblings);
      if (box === selected && box.isOpen) {
        for (const child of box.children.slice(0, MOST)) {
          this.add(child, labels, selected, box.children);
        }
      }
    }
    this.tree.replaceChildren(...this.entries.keys());
    const active = [...this.entries].find(([, box]) => box === selected)?.[0];
    if (active === undefined) {
      this.tree.removeAttribute("aria-activedescendant");
    } else {
      this.tree.setAttribute("aria-activedescendant", active.id);
    }
  }

  /** Lays the entries over their boxes. */
  place({ x, y, scale }: View): void {
    for (const [entry, box] of this.entries) {
      entry.style.left = `${(box.x - x) * scale}px`;
      entry.style.top = `${(box.y - y) * scale}px`;
      entry.style.width = `${box.width * scale}px`;
      entry.style.height = `${(box.isOpen ? Math.min(box.height, 26) : box.height) * scale}px`;
    }
  }

  private add(box: Box, labels: Labels, selected: Box | undefined, siblings: readonly Box[]): void {
    let depth = 1;
    for (let at = box.parent; at?.parent !== undefined; at = at.parent) {
      depth += 1;
    }
    const attributes: Record<string, string> = {
      role: "treeitem",
      id: `item-${box.item}`,
      "aria-level": String(depth),
      "aria-setsize": String(siblings.length),
      "aria-posinset": String(siblings.indexOf(box) + 1),
      "aria-selected": String(box === selected),
      "aria-label": described(box, labels),
    };
    if (box.cluster !== undefined) {
      attributes["aria-expanded"] = String(box.isOpen);
    }
    this.entries.set(h("div", attributes), box);
  }
}

/** `relu, aten.relu, f32[8, 32]`; of a cluster its name, what it is, and how many nodes are in it. */
export function described(box: Box, labels: Labels): string {
  const { model } = labels;
  if (box.cluster !== undefined) {
    const nodes = units.count(box.cluster.last - box.cluster.first, "node");
    const type = box.cluster.type === "part" ? "" : box.cluster.type;
    return [box.cluster.name, type, nodes, box.isOpen ? "open" : "closed"].filter((part) => part !== "").join(", ");
  }
  const state = ["", "added", "removed", "changed"][model.state(box.item)] ?? "";
  const parts = [model.name(box.item), model.op(box.item), model.detail(box.item), state];
  return parts.filter((part) => part !== "").join(", ");
}
