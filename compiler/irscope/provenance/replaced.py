"""What a pass put in the place of other nodes came from all of them.

PyTorch says of a node in the place of several that it came from one of them, mostly the last: of an ``addmm`` that was
made of ``mm`` and ``add`` from the ``add``.  The others that the pass removed are found by the edges between them.
Of what some passes make it says nothing: that is found by what used the node that was there, and now uses this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.nodes import facts_of
from irscope.provenance.elements import Items

_LARGEST = 64
"""Nodes in one replaced pattern.  A pass that built a whole new graph does not tell which node became which."""


def add_replaced(links: dict[str, tuple[str, ...]], parents: Items, data: Mapping[str, Any]) -> None:
    """Gives the nodes that a pass added all the nodes that they stand for.

    Parameters
    ----------
    links
        Name in the later graph → names in the earlier one; is changed.
    parents
        The earlier graph.
    data
        Of the version that the pass made, with the names of nodes as sets.
    """
    removed = {name for name in data["removed"] if name in parents.by_name}
    successors = _successors(links, parents, removed, data)
    added = [name for name in data["added"] if not removed.isdisjoint(links.get(name, ()))]
    together = _patterns(removed, parents) if added else {}
    for name in added:
        own = links[name]
        patterns = {id(pattern): pattern for one in own if (pattern := together.get(one)) is not None}
        others = [one for pattern in patterns.values() if len(pattern) <= _LARGEST for one in pattern]
        links[name] = tuple(dict.fromkeys([*own, *others]))
    links.update(successors)


def _successors(
    links: Mapping[str, tuple[str, ...]], parents: Items, removed: set[str], data: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """The unknown nodes with those whose users they have, and what was removed above these."""
    unknown = {name for name in data["added"] if not links.get(name)} if removed else set()
    found: dict[str, dict[str, None]] = {}
    for user in facts_of(data.get("new")) if unknown else ():
        if user.name not in data["changed"] or user.name not in parents.by_name:
            continue
        came = [name for name in user.inputs if name in unknown]
        gone = [name for name in parents.by_name[user.name].inputs if name in removed]
        pairs = zip(came, gone, strict=True) if len(came) == len(gone) else itertools.product(came, gone)
        for new, old in pairs:
            found.setdefault(new, {})[old] = None
    for stood in found.values():
        todo = list(stood)
        while todo and len(stood) <= _LARGEST:
            above = [one for one in parents.by_name[todo.pop()].inputs if one in removed and one not in stood]
            stood.update(dict.fromkeys(above))
            todo += above
    return {name: tuple(stood) for name, stood in found.items()}


def _patterns(removed: set[str], graph: Items) -> Mapping[str, Sequence[str]]:
    """Each removed node → the removed ones that hang together with it by edges of the graph, itself among them."""
    found: dict[str, list[str]] = {name: [name] for name in removed}
    for name in sorted(removed, key=lambda name: graph.by_name[name].element.line):
        for above in graph.by_name[name].inputs:
            if above in removed and found[above] is not found[name]:
                small, large = sorted((found[above], found[name]), key=len)
                large += small
                for one in small:
                    found[one] = large
    return found
