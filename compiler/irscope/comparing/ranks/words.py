"""Words for a difference of two ranks: the user's names in place of those of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.graphs import GraphNode
from irscope.ir.guard_text import readable_size
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

_ARGUMENT = pattern(r"^[LGlg]_(\w+?)_?$")
_OF_MODULE = pattern(r"_(?:modules|parameters|buffers)_")
_SYMBOLIC = pattern(r"^Sym\((.+)\)$")
_SYMBOL = pattern(r"(?<![\w.$])[sz]\d+(?!\w)")
_SIMPLE = pattern(r"^[\w.]+$")
_LONGEST_SOURCE = 60


@dataclass(frozen=True)
class Size:
    """What a symbol is: ``x.shape[0]``, and its value in the compile; empty if that is not known."""

    source: str
    value: str


def words_of_nodes(nodes: Sequence[GraphNode]) -> dict[str, str]:
    """How a statement names each node: an argument by the user's name, a size by its expression.

    Any other node keeps its name in the graph, as the stage shows it.  Dynamo writes ``l_x_`` for the input ``L_x_``.
    """
    found = {node.name: _words(node) for node in nodes}
    inputs = [node.name for node in nodes if node.op == "placeholder"]
    return {name.lower(): found[name] for name in inputs} | found


def _words(node: GraphNode) -> str:
    if (symbolic := _SYMBOLIC.match(node.detail)) is not None:
        expression = symbolic[1]
        return expression if _SIMPLE.match(expression) else f"({expression})"
    if node.op == "placeholder" and (argument := _ARGUMENT.match(node.name)) is not None:
        return _OF_MODULE.sub(".", argument[1])
    return node.name


def sizes_of(data: Any) -> dict[str, Size]:
    """The symbols of a compile by name, from the data of its stage of symbols (`irscope.ir.symbols`); damaged ones are
    left out."""
    told = data.get("symbols") if isinstance(data, dict) else None
    found = {}
    for one in told if isinstance(told, list) else ():
        if isinstance(one, dict) and isinstance(one.get("symbol"), str):
            source, hint = one.get("source"), one.get("hint")
            found[one["symbol"]] = Size(
                readable_size(source) if isinstance(source, str) and len(source) <= _LONGEST_SOURCE else "",
                hint if isinstance(hint, str) else "",
            )
    return found


def with_sizes(text: str, sizes: Mapping[str, Size]) -> str:
    """With the source of each symbol in place of its name, and the values: ``3*x.shape[0] (x.shape[0] was 8)``."""
    if (symbolic := _SYMBOLIC.match(text)) is not None:
        text = f"the size {symbolic[1]}"
    names = {name: (sizes[name].source or name) for name in dict.fromkeys(_SYMBOL.findall(text)) if name in sizes}
    values = [f"{shown} was {sizes[name].value}" for name, shown in names.items() if sizes[name].value]
    text = _SYMBOL.sub(lambda match: names.get(match[0], match[0]), text)
    return f"{text} ({', '.join(values)})" if values else text
