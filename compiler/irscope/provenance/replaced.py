"""What a pass put in the place of several nodes came from all of them.

PyTorch says of such a node that it came from one of them, mostly the last: of an ``addmm`` that was made of ``mm`` and
``add`` from the ``add``.  The others that the pass removed are found by the edges between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.provenance.elements import Items

_LARGEST = 64
"""Nodes in one replaced pattern.  A pass that made a whole graph anew tells nothing of which node became which."""


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
    added = [name for name in data["added"] if not removed.isdisjoint(links.get(name, ()))]
    if not added:
        return
    together = _patterns(removed, parents)
    for name in added:
        own = links[name]
        patterns = {id(pattern): pattern for one in own if (pattern := together.get(one)) is not None}
        others = [one for pattern in patterns.values() if len(pattern) <= _LARGEST for one in pattern]
        links[name] = tuple(dict.fromkeys([*own, *others]))


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
