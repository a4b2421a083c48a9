"""What a pass put in the place of other nodes came from all of them.

PyTorch says of a node in the place of several that it came from one of them, mostly the last: of an ``addmm`` that was
made of ``mm`` and ``add`` from the ``add``.  The others that the pass removed are found by the edges between them.
It says nothing about what some passes make: that is found by what used the node that was there, and now uses this one.
A pass may also replace what an earlier one made: an integer convolution takes the place of one with a ``relu`` behind
it, and then there is the operator that Inductor lowers.  So what each node stands for is handed on from pass to pass.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.ir.nodes import NodeFacts, Source, facts_of
from irscope.provenance.elements import Items
from irscope.provenance.links import nearest_sources

_LARGEST = 64
"""Nodes in one replaced pattern.  A pass that built a whole new graph does not tell which node became which."""


def add_replaced(
    links: dict[str, tuple[str, ...]],
    parents: Items,
    versions: Iterable[tuple[Mapping[str, Any], Sequence[NodeFacts]]],
    guessed: Collection[str] = (),
) -> None:
    """Gives the nodes that passes added all the nodes that they stand for.

    Args:
        links: Name in the later graph → names in the earlier one; is changed.
        parents: The earlier graph.
        versions: For each version that a pass made, in their order: the data with the names of nodes as sets, and the
            facts of the nodes that the pass added or changed.
        guessed: Names in the later graph whose links nothing tells; what they took the place of takes the place of
            these.
    """
    graph = _Passed(links, parents, guessed)
    for data, facts in versions:
        graph.take(data, facts)


def new_facts(data: Mapping[str, Any]) -> tuple[NodeFacts, ...]:
    """Facts of the nodes that a pass added or changed, from the data of its version; none if another irscope wrote
    it."""
    try:
        return facts_of(data.get("new"))
    except (LookupError, TypeError, ValueError, AttributeError):
        return ()


_Key = tuple[int, str]
"""The number of a graph, and the name of a node in it."""


@dataclass
class _Passed:
    """The graph as pass after pass leaves it.

    Args:
        represents: A node that a pass made → the nodes of the earlier graph that it replaced.
        inputs: Inputs of nodes that a pass added or changed, if these were among them, too.
        sources: PyTorch's word on the origin of nodes that a pass added.
    """

    links: dict[str, tuple[str, ...]]
    parents: Items
    guessed: Collection[str]
    represents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sources: dict[str, tuple[Source, ...]] = field(default_factory=dict)

    def take(self, data: Mapping[str, Any], facts: Sequence[NodeFacts]) -> None:
        """The next pass."""
        removed = {name for name in data["removed"] if name in self.parents.by_name or name in self.represents}
        made = {fact.name: fact for fact in facts}
        if removed and data["added"]:
            self._replace(removed, made, data, facts)
        self.inputs.update((fact.name, fact.inputs) for fact in facts)
        self.sources.update((fact.name, fact.sources) for fact in facts if fact.name in data["added"])

    def _replace(
        self,
        removed: set[str],
        made: Mapping[str, NodeFacts],
        data: Mapping[str, Any],
        facts: Sequence[NodeFacts],
    ) -> None:
        """Notes what each node that the pass added stands for."""
        replaced = self._replaced(removed, {name: made.get(name) for name in data["added"]})
        unknown = {name for name, gone in replaced.items() if not gone and not self._told(made.get(name), name)}
        successors = self._successors(unknown, removed, data, facts)
        together = self._patterns(removed)
        for name, gone in replaced.items():
            patterns = {id(together[old]): together[old] for old in gone}
            small = [old for pattern in patterns.values() if len(pattern) <= _LARGEST for old in pattern]
            self._note(name, [*self._told(made.get(name), name), *self._origins(small)])
        for name, predecessors in successors.items():
            self._note(name, self._origins(predecessors))

    def _replaced(self, removed: set[str], added: Mapping[str, NodeFacts | None]) -> dict[str, list[str]]:
        """The nodes that a pass added, each with removed ones that it took the place of.

        A new node has the sources of the node in whose place it is.  Where it has none that tell, it stands for what
        its links in the later graph are.
        """
        by_key: dict[_Key, list[str]] = defaultdict(list)
        by_origin: dict[str, list[str]] = defaultdict(list)
        for name in sorted(removed):
            for key in self._keys(name):
                by_key[key].append(name)
            for origin in self._stood(name):
                by_origin[origin].append(name)
        found: dict[str, list[str]] = {}
        for name, fact in added.items():
            gone = self._by_sources(fact.sources, by_key, removed) if fact is not None else []
            if not gone:
                gone = [old for origin in self._told(fact, name) for old in by_origin.get(origin, ())]
            found[name] = list(dict.fromkeys(gone))
        return found

    def _by_sources(
        self, sources: tuple[Source, ...], by_key: Mapping[_Key, Sequence[str]], removed: set[str]
    ) -> list[str]:
        """The nearest removed nodes that sources tell: a copy of the graph has another number."""
        gone: list[str] = []
        while sources and not gone:
            gone += [name for source in sources for name in by_key.get((source.graph, source.name), ())]
            gone += [source.name for source in sources if source.name in removed and source.name in self.represents]
            above = (farther for source in sources for farther in source.sources)
            sources = tuple({(source.graph, source.name): source for source in above}.values())
        return gone

    def _keys(self, name: str) -> set[_Key]:
        if name in self.sources:
            return {(source.graph, source.name) for source in self.sources[name] if source.name}
        facts = self.parents.by_name[name].facts
        keys = {(source.graph, source.name) for source in facts.sources if source.name} if facts is not None else set()
        return keys if self.parents.graph is None else keys | {(self.parents.graph, name)}

    def _told(self, fact: NodeFacts | None, name: str) -> Sequence[str]:
        """What the sources of a node say, and its links in the later graph."""
        known = () if name in self.guessed and fact is not None else self.links.get(name, ())
        return known if fact is None else [*known, *nearest_sources(self.parents, fact.sources)]

    def _note(self, name: str, origins: Iterable[str]) -> None:
        known = tuple(dict.fromkeys(origins))
        if not known:
            return
        if name not in self.parents.by_name:  # a name of the earlier graph may be used again
            self.represents[name] = known
        self.links[name] = known

    def _origins(self, names: Iterable[str]) -> Iterator[str]:
        return (origin for name in names for origin in self._stood(name))

    def _stood(self, name: str) -> tuple[str, ...]:
        return self.represents.get(name) or ((name,) if name in self.parents.by_name else ())

    def _inputs_of(self, name: str) -> tuple[str, ...]:
        before = self.parents.by_name.get(name)
        return (*(before.inputs if before is not None else ()), *self.inputs.get(name, ()))

    def _successors(
        self, unknown: set[str], removed: set[str], data: Mapping[str, Any], facts: Sequence[NodeFacts]
    ) -> dict[str, tuple[str, ...]]:
        """The unknown nodes with those whose users they have, and what was removed above these."""
        found: dict[str, dict[str, None]] = {}
        for user in facts if unknown else ():
            if user.name not in data["changed"]:
                continue
            new = [name for name in user.inputs if name in unknown]
            gone = [name for name in self._inputs_of(user.name) if name in removed]
            pairs = zip(new, gone, strict=True) if len(new) == len(gone) else itertools.product(new, gone)
            for one, old in pairs:
                found.setdefault(one, {})[old] = None
        for stood in found.values():
            todo = list(stood)
            while todo and len(stood) <= _LARGEST:
                above = [one for one in self._inputs_of(todo.pop()) if one in removed and one not in stood]
                stood.update(dict.fromkeys(above))
                todo += above
        return {name: tuple(stood) for name, stood in found.items()}

    def _patterns(self, removed: set[str]) -> Mapping[str, Sequence[str]]:
        """Each removed node → the removed ones that hang together with it by edges of the graph, itself among them."""
        found: dict[str, list[str]] = {name: [name] for name in removed}
        for name in sorted(removed):
            for above in self._inputs_of(name):
                if above in removed and found[above] is not found[name]:
                    small, large = sorted((found[above], found[name]), key=len)
                    large += small
                    for one in small:
                        found[one] = large
        return found
