"""Which operation of a graph is which of the graph before a pass.

The executor changes a graph in place, or copies it and numbers its values again.  Passes keep the names of values, and
so the same value of the same operation is found again; in a copy it is the operation at the same place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irscope.ir.torchscript import ScriptGraph, Statement

Key = tuple[str, str, str]
PROFILES = ("prim::profile", "prim::profile_ivalue", "prim::BailOut", "prim::Guard")
"""What the profiler puts around values; it comes and goes."""
_ENOUGH = 0.9
"""A copy numbers its values again; then few operations of the same kind and place have the same number by chance."""


def key_of(kind: str, location: str, scope: str) -> Key:
    """What an operation keeps when a pass copies it."""
    return kind, location, scope


@dataclass(frozen=True)
class Named:
    """An operation as it was printed.

    Args:
        values: What TorchScript calls its results.
        names: How it was printed: the operation, and each of its results if they are several.  Empty if it was not.
    """

    key: Key
    values: tuple[str, ...]
    names: tuple[str, ...]


def identity(statement: Statement) -> tuple[Key, tuple[str, ...]]:
    """What tells an operation from others of its graph.  Graphs that are called have other numbers after each pass."""
    kind = re.sub(r"(?<=Graph)_\d+$|(?<=Group)_\d+$", "", statement.kind)
    return key_of(kind, statement.location, statement.scope), tuple(value.name for value in statement.outputs)


def inherited(graph: ScriptGraph, before: Sequence[Named]) -> Mapping[int, tuple[str, ...]]:
    """The names of a graph's statements (by their ``id``) that they had in the graph before it."""
    now = [(id(one), *identity(one)) for one in graph.statements() if one.kind not in PROFILES]
    if [key for _, key, _ in now] == [one.key for one in before]:
        return {at: one.names for (at, _, _), one in zip(now, before, strict=True)}
    known = {(one.key, one.values): one.names for one in before if one.values}
    found = [(at, values, known[key, values]) for at, key, values in now if (key, values) in known]
    is_same_object = len(found) >= _ENOUGH * min(len(now), len(before))
    return {at: names for at, values, names in found if is_same_object or not any(map(str.isdecimal, values))}
