"""Where the nodes of a graph belong in the tree of the user's modules: in the panel, and in a picture."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from irscope.vocabulary.graph_looks import MANY_INPUTS
from irscope.vocabulary.records import dataclass

Path = tuple[str, ...]
"""Names of modules, outermost first."""

_PLAIN_PATH = re.compile(r"[LG]\['([^'\"\]]+)'\]((?:\.[^.\[\]]+)*)")
_SEGMENT = re.compile(r"\[['\"]?([^'\"\]]*)['\"]?\]|([^.\[\]]+)")
_PARAMETER = re.compile(r"_(?:parameters|buffers|modules)_|^self_|\.weight$|\.bias$")
_DEEPEST = 100
"""Modules around each other; a store from elsewhere may name more."""
_FLOATING = re.compile(r"(?:f|bf|c)\d")
_MOST_NEIGHBOURS = 16
"""The most neighbours of a node that has no module; with more of them it may be drawn further out."""


def split_module(path: str, kind: str) -> tuple[Path, str]:
    """``G['model'].encoder.layer.0`` → (model, encoder, layer, 0), with the module's class."""
    path = path.replace(_WRAPPED, COMPILED_MODULE[0], 1) if path.startswith(_WRAPPED) else path
    if plain := _PLAIN_PATH.fullmatch(path):  # most are, and a large model has ten thousand
        return (plain[1], *(part for part in plain[2].split(".")[1:] if part not in _INNER))[:_DEEPEST], kind
    head, *rest = [match[1] or match[2] for match in _SEGMENT.finditer(path)] or [path]
    if rest and head in ("L", "G"):
        head, *rest = rest
    return (head, *(part for part in rest if part not in _INNER))[:_DEEPEST], kind


@functools.lru_cache(maxsize=4096)
def attribute_path(path: str) -> str:
    """A module as an attribute of what was compiled: ``layers.0`` for ``L['self'].__dict__['_modules']['layers'].0``, and
    ``net.layers.0`` for ``G['net'].layers.0``; empty for the compiled module itself."""
    head, *rest = split_module(path, "")[0]
    return ".".join(rest if path.startswith(COMPILED_MODULE) else [head, *rest])


_WRAPPED = "L['args'][0]"
"""The module where a decorator is around its ``forward``, as in Transformers: ``def wrapper(*args, **kwargs)``."""
COMPILED_MODULE = ("L['self']", "L['fn']", "L['mod']", _WRAPPED)
"""How Dynamo names the module whose ``forward`` it compiles."""
_INNER = ("_modules", "__dict__")


@dataclass(frozen=True)
class PlacedNodes:
    """Columns of a graph's nodes, in an order in which most come after what they use.

    Args:
        kinds: ``placeholder``, ``get_attr``, ``output``; anything else is an operation.
        dtypes: As printed: ``f32``.
        modules: Module of each node; None if it has none.
        untold: Whether PyTorch does not say where the node is from: a pass or autograd made it.  Any other node without
            a module is from a line of the user's that is outside of all modules.
        backward: Whether it is a part of the backward.
        edges: Pairs of numbers: what is used, and what uses it.
    """

    names: Sequence[str]
    kinds: Sequence[str]
    dtypes: Sequence[str]
    modules: Sequence[Path | None]
    untold: Sequence[bool]
    backward: Sequence[bool]
    edges: Sequence[tuple[int, int]]


def homes(nodes: PlacedNodes) -> list[Path | None]:
    """The module around each node in the drawing; None: in none.

    An operation without a module is drawn in the innermost module that both what it uses and what uses it
    belong to: drawn outside, it would be before and after this module at once.  Where there is no such module, one that
    PyTorch does not say anything about is drawn with its neighbours, and the user's own stays outside.  Parameters,
    and the inputs if there are many, are drawn where they are used.

    A module that is called again on what came of its first call is drawn once for each call, as ``norm@1``, which is
    PyTorch's name of the second call: one box would be before and after what is between the calls.
    """
    around = _Neighbours(nodes)
    found = list(nodes.modules)
    for node in around.lacking:
        found[node] = around.home(node)
    _split_calls(nodes, around.inputs, found)
    many = sum(kind == "placeholder" for kind in nodes.kinds) > MANY_INPUTS
    for node, kind in enumerate(nodes.kinds):
        if kind == "get_attr" or (
            kind == "placeholder"
            and (_PARAMETER.search(nodes.names[node]) or (many and _FLOATING.match(nodes.dtypes[node])))
        ):
            found[node] = _shared(nodes, around.users[node], found)
    return found


def has_both_ways(nodes: PlacedNodes) -> bool:
    """Whether a graph has a forward and a backward: only then are they drawn apart."""
    of_calls = {bool(nodes.backward[node]) for node, kind in enumerate(nodes.kinds) if is_call(kind)}
    return len(of_calls) == 2


def is_call(kind: str) -> bool:
    """Whether a node of this kind is an operation."""
    return kind not in ("placeholder", "get_attr", "output")


class _Neighbours:
    """The modules of the nearest nodes that have one, above and below each operation that has none."""

    def __init__(self, nodes: PlacedNodes) -> None:
        self._nodes = nodes
        count = len(nodes.names)
        self.users: list[list[int]] = [[] for _ in range(count)]
        self.inputs: list[list[int]] = [[] for _ in range(count)]
        for source, to in nodes.edges:
            self.inputs[to].append(source)
            self.users[source].append(to)
        self.lacking = [node for node, kind in enumerate(nodes.kinds) if nodes.modules[node] is None and is_call(kind)]
        is_split = has_both_ways(nodes)
        self._above = self._spread(self.lacking, self.inputs, False)
        self._below = self._spread(self.lacking[::-1], self.users, is_split)

    def _spread(
        self, order: Iterable[int], beside: Sequence[Sequence[int]], forward_alone: bool
    ) -> dict[int, dict[Path, None]]:
        """``forward_alone``: for a node of the forward, what is in the backward does not count."""
        modules, backward = self._nodes.modules, self._nodes.backward
        found: dict[int, dict[Path, None]] = {}
        for node in order:
            mine: dict[Path, None] = {}
            for other in beside[node]:
                if len(mine) >= _MOST_NEIGHBOURS:
                    break
                if forward_alone and backward[other] and not backward[node]:
                    continue
                own = modules[other]
                if own is not None:
                    mine[own] = None
                else:
                    mine.update(found.get(other, {}))
            found[node] = mine
        return found

    def home(self, node: int) -> Path | None:
        above, below = self._above[node], self._below[node]
        between = _between(above, below)
        if between or not self._nodes.untold[node]:
            return between or None
        beside = () if above and below else above or below
        return (_common_of(beside) or None) if beside else None


def called_module(path: Path) -> Path:
    """The path of a module without the numbers of its calls."""
    return tuple(_CALL.sub("", part) for part in path)


_CALL = re.compile(r"@\d+\Z")
_MOST_VISITS = 30
"""For each node of a graph: so often nodes are looked at for calls of modules; the modules after that are drawn once."""


def _split_calls(nodes: PlacedNodes, inputs: Sequence[Sequence[int]], found: list[Path | None]) -> None:
    """Puts the number of the call into the paths of what a module computes in a further call."""
    spans: dict[tuple[Path, bool], list[int]] = {}
    for node, path in enumerate(found):
        if path and is_call(nodes.kinds[node]):
            for depth in range(1, len(path) + 1):
                spans.setdefault((path[:depth], bool(nodes.backward[node])), []).append(node)
    left = _MOST_VISITS * len(found)
    calls: dict[tuple[int, int], int] = {}
    for (module, _), inside in spans.items():
        span = range(inside[0], inside[-1] + 1)
        if len(inside) == len(span) or len(span) > left:  # all that is between belongs to it, so it is called once
            continue
        left -= len(span)
        for node, number in _calls_of(inside, span, inputs).items():
            calls[node, len(module)] = number
    for node, depth in calls:
        path = found[node] or ()
        found[node] = (*path[: depth - 1], f"{path[depth - 1]}@{calls[node, depth]}", *path[depth:])


def _calls_of(inside: Sequence[int], span: range, inputs: Sequence[Sequence[int]]) -> dict[int, int]:
    """The number of the call for those of a module's nodes that depend, through nodes outside of it, on an earlier call."""
    mine, call = set(inside), dict[int, int]()
    for node in span:
        is_mine = node in mine
        before = [call[used] + (used in mine and not is_mine) for used in inputs[node] if used in call]
        if before or is_mine:
            call[node] = max(before, default=0)
    return {node: call[node] for node in inside if call[node]}


def _shared(nodes: PlacedNodes, users: Iterable[int], found: Sequence[Path | None]) -> Path | None:
    """What the operations that use an input have in common: those of the forward, if it has any there.

    An empty path if it is used in no common module; None if nothing uses it.
    """
    calls = [user for user in users if is_call(nodes.kinds[user])]
    forward = [user for user in calls if not nodes.backward[user]]
    return _common_of([found[user] or () for user in forward or calls]) if calls else None


def _between(above: Iterable[Path], below: Iterable[Path]) -> Path:
    """The innermost module that is around one of the first and one of the others; empty if there is none."""
    around = {path[:depth] for path in above for depth in range(1, len(path) + 1)}
    best: Path = ()
    for path in below if around else ():
        for depth in range(len(path), len(best), -1):
            if path[:depth] in around:
                best = path[:depth]
                break
    return best


def _common_of(paths: Iterable[Path]) -> Path:
    first, *rest = paths
    for path in rest:
        first = _common(first, path)
    return first


def _common(one: Path, other: Path) -> Path:
    if one == other:
        return one
    for depth, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:depth]
    return min(one, other, key=len)
