/** Two texts side by side, with what is different between them. */

import { MergeView } from "@codemirror/merge";
import { keymap } from "@codemirror/view";
import { searchKeymap } from "@codemirror/search";
import { reading } from "./textView";

export interface Side {
  text: string;
  language: string;
  label: string;
}

export function diffView(parent: HTMLElement, left: Side, right: Side): MergeView {
  const side = ({ text, language, label }: Side) => ({
    doc: text,
    extensions: [reading(language, label), keymap.of([...searchKeymap])],
  });
  return new MergeView({
    parent,
    a: side(left),
    b: side(right),
    gutter: true,
    highlightChanges: true,
    collapseUnchanged: { margin: 4, minSize: 8 },
    diffConfig: { scanLimit: 5_000, timeout: 2_000 },
  });
}
