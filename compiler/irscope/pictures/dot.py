"""A folded graph as DOT, the language of Graphviz.

Names come from scripts and stores. So each text is quoted, has no control characters and is bounded; what has a meaning to
Graphviz (backslashes, ampersands) is escaped, and the labels that are markup are made of our own words or escaped for it.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator

from irscope.pictures.folding import Box, Frame, Picture
from irscope.pictures.graph import PictureGraph
from irscope.vocabulary.graph_looks import CATEGORIES, FAMILIES
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_QUICK = "nslimit=2, nslimit1=2"
"""Rounds of the network simplex for each node.  Without a bound `dot` does not end on a joint graph of 500 nodes; with this
one it takes two seconds, and layers and frames are the same."""
_LONGEST_LABEL = 48
_LONGEST_TOOLTIP = 300
_SHAPE = re.compile(r"\w+\[[^\]]*\]")


@dataclass(frozen=True)
class _Theme:
    background: str
    ink: str
    muted: str
    frame: str
    node: str
    wire: str


_COLOURS = {
    "light": _Theme("#ffffff", "#1f1f1f", "#5f5f5f", "#f5f5f5", "#fcfcfc", "#8a8a8a"),
    "dark": _Theme("#1f1f1f", "#e0e0e0", "#a8a8a8", "#282828", "#232323", "#858585"),
}
_TINT = 0.25
"""How much of a node's colour is in what it is filled with."""


def to_dot(graph: PictureGraph, picture: Picture, title: str, theme: str = "light") -> str:
    """The picture as DOT: modules as clusters or boxes, operations by the colours of the graph panel."""
    return "\n".join([*_Writer(graph, picture, theme).lines(title), ""])


class _Writer:
    def __init__(self, graph: PictureGraph, picture: Picture, theme: str) -> None:
        self._graph, self._picture = graph, picture
        self._palette, self._theme = CATEGORIES[theme], _COLOURS[theme]
        self._boxes = list(picture.root.boxes())
        self._number = {box.nodes: at for at, box in enumerate(self._boxes)}
        self._frames = 0

    def lines(self, title: str) -> Iterator[str]:
        theme = self._theme
        font = f'fontname="Helvetica,Arial,sans-serif", fontcolor="{theme.ink}"'
        yield "digraph irscope {"
        yield f'  graph [rankdir=TB, {_QUICK}, bgcolor="{theme.background}", labelloc=t, fontsize=12, {font}, label={self._head(title)}];'
        yield f'  node [shape=box, style="rounded,filled", fontsize=11, margin="0.12,0.06", height=0.3, {font}, color="{theme.wire}", fillcolor="{theme.node}"];'
        yield f'  edge [arrowsize=0.6, fontsize=9, {font}, color="{theme.wire}"];'
        yield from self._parts(self._picture.root, "  ")
        if self._picture.left_out:
            words = f"… and {count(self._picture.left_out, 'more node')}"
            yield f'  b{len(self._boxes)} [label={quoted(words)}, style="dashed,rounded", tooltip="not drawn"];'
        for (source, user), edges in self._picture.wires.items():
            yield f"  b{source} -> b{user}" + (f' [label="{edges}"];' if edges > 1 else ";")
        yield "}"

    def _parts(self, frame: Frame, indent: str) -> Iterator[str]:
        for part in frame.parts:
            if isinstance(part, Box):
                yield f"{indent}b{self._number[part.nodes]} [{self._box(part)}];"
                continue
            self._frames += 1
            theme = self._theme
            yield f"{indent}subgraph cluster_{self._frames} {{"
            label = quoted(" · ".join(short(word) for word in (part.name, part.type) if word), _LONGEST_TOOLTIP)
            fill = theme.frame if len(indent) % 4 == 2 else theme.background
            yield (
                f'{indent}  graph [label={label}, style="rounded,filled", '
                f'labeljust=l, color="{theme.wire}", fillcolor="{fill}", tooltip={label}];'
            )
            yield from self._parts(part, indent + "  ")
            yield f"{indent}}}"

    def _box(self, box: Box) -> str:
        if box.is_folded:
            nodes = count(len(box.nodes), "node")
            label = _words(box.name, f"{short(box.type)} · {nodes}" if box.type else nodes)
            return f"label={label}, tooltip={quoted(box.name, _LONGEST_TOOLTIP)}, peripheries=2, {self._shares(box)}"
        node = self._graph.nodes[box.nodes[0]]
        shape = _SHAPE.match(node.detail)
        told = [f"{node.name} {node.detail}".rstrip(), ".".join(node.home), node.place]
        look = ""
        if node.family is not None:
            colour = self._palette[node.family.colour]
            look = f', color="{colour}", fillcolor="{mixed(self._theme.node, colour, _TINT)}"'
        tooltip = quoted("\n".join(line for line in told if line), _LONGEST_TOOLTIP)
        return f"label={_words(node.title, shape[0] if shape else '')}, tooltip={tooltip}{look}"

    def _shares(self, box: Box) -> str:
        """The colours of what is in a folded module, as wide as each has a part in it."""
        families = [self._graph.nodes[number].family for number in box.nodes]
        counts = Counter(family.colour for family in families if family is not None)
        order = [family.colour for family in FAMILIES if family.colour in counts]
        fills = [mixed(self._theme.node, self._palette[colour], _TINT) for colour in order]
        if len(fills) < 2:
            return f'style=filled, fillcolor="{(fills or [self._theme.node])[0]}"'
        total = sum(counts.values())
        shares = [f"{fill};{counts[colour] / total:.4f}" for fill, colour in zip(fills, order, strict=True)]
        stripes = ":".join([*shares[:-1], fills[-1]])  # the last one has the rest, so that rounding does not matter
        return f'style=striped, fillcolor="{stripes}"'

    def _head(self, title: str) -> str:
        """The title, what is folded and left out, and what the colours mean."""
        used = {node.family for box in self._boxes for node in (self._graph.nodes[number] for number in box.nodes)}
        legend = "".join(
            f'<td width="14" bgcolor="{self._palette[family.colour]}"></td><td align="left">{family.name}</td>'
            for family in FAMILIES
            if family in used
        )
        span = 2 * len(FAMILIES)
        texts = [f"<b>{_markup(title)}</b>", _markup(told(self._picture))]
        rows = "".join(f'<tr><td colspan="{span}">{text}</td></tr>' for text in texts)
        inner = f'<table border="0" cellborder="0" cellspacing="4"><tr>{legend}</tr></table>' if legend else ""
        rows += f'<tr><td colspan="{span}">{inner}</td></tr>' if inner else ""
        return f'<<table border="0" cellborder="0" cellspacing="2">{rows}</table>>'


def told(picture: Picture) -> str:
    """``239 nodes; modules inside 2 others are folded; 40 nodes are left out``."""
    words = [count(picture.nodes, "node")]
    folded = [box for box in picture.root.boxes() if box.is_folded]
    if folded:
        nodes = sum(len(box.nodes) for box in folded)
        words.append(f"{count(nodes, 'node')} in {count(len(folded), 'folded module')} (--depth {picture.depth})")
    if picture.left_out:
        words.append(f"{count(picture.left_out, 'node')} left out (--max-nodes)")
    return "; ".join(words)


def quoted(text: str, longest: int = _LONGEST_LABEL) -> str:
    """A string of DOT that shows the text as it is: neither markup nor an escape or an entity of Graphviz's."""
    lines = [short(line, longest) for line in text.split("\n")]
    return '"' + "\\n".join(
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines
    ) + '"'  # fmt: skip


def short(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Without control characters, and cut in its middle where it is too long."""
    text = printable(text)
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[len(text) - half :]}"


def _words(*lines: str) -> str:
    return quoted("\n".join(short(line) for line in lines if line))


def _markup(text: str) -> str:
    return html.escape(short(text, _LONGEST_TOOLTIP))


def mixed(start: str, end: str, share: float) -> str:
    """A colour between two others, each as ``#rrggbb``."""
    parts = [(int(start[at : at + 2], 16), int(end[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(one + (other - one) * share):02x}" for one, other in parts)
