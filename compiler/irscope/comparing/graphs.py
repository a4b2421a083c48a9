"""What changed between two graphs, by structure.

Names and numbers of nodes shift with every edit and every pass, so a diff of the texts shows a graph that was
renumbered as one that is new.  Here two nodes are the same where they compute the same thing from the same things;
the names count least.

The method: nodes with the same operation, arguments and facts on inputs that are the same are matched from the inputs
down (a hash of the whole expression); what is left is matched by how many of its inputs, users and facts agree, until
nothing more is found.  What then has no partner was added or removed.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import re
from collections import defaultdict

from irscope.ir.graphs import Graph, GraphNode, parse_graph
from irscope.vocabulary.records import dataclass

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_NEAR = 16
"""If an operation occurs very often, only this many nodes before and after the same place are looked at."""


@dataclass(frozen=True)
class NodeChange:
    """The same operation in both graphs, with something about it changed."""

    before: GraphNode
    after: GraphNode
    what: tuple[str, ...]
    """The fields that differ: ``inputs``, ``arguments`` (constants among them), ``type`` (dtype, shape, strides,
    device) and ``target``."""


@dataclass(frozen=True)
class GraphDiff:
    """``pairs`` are the names of matched nodes, changed ones included."""

    added: tuple[GraphNode, ...]
    removed: tuple[GraphNode, ...]
    changed: tuple[NodeChange, ...]
    pairs: tuple[tuple[str, str], ...]

    @property
    def same(self) -> bool:
        """Whether no node was added, removed or changed."""
        return not (self.added or self.removed or self.changed)


def diff_graphs(before: str, after: str) -> GraphDiff:
    """Compares two printed graphs.  Raises ValueError if a text is none."""
    return _Matcher(_Side(before), _Side(after)).diff()


class _Side:
    """One of the two graphs, with what the matching needs of it."""

    def __init__(self, text: str) -> None:
        self.graph: Graph = parse_graph(text)
        self.nodes = {node.name: node for node in self.graph.nodes}
        self.index = {name: i for i, name in enumerate(self.nodes)}
        self.users: dict[str, list[str]] = defaultdict(list)
        for node in self.graph.nodes:
            if node.op != "output":  # that many nodes are returned says nothing of which is which
                for name in node.inputs:
                    self.users[name].append(node.name)
        lines = text.split("\n")
        self.shape = {node.name: self._shape(node, lines) for node in self.graph.nodes}
        self.places = {
            node.name: f"{node.origin.file}:{node.origin.line}" if node.origin else "" for node in self.graph.nodes
        }
        self.hash: dict[str, int] = {}
        inputs = 0
        for node in self.graph.nodes:
            if node.op == "placeholder":
                what: object = ("input", inputs, node.detail)
                inputs += 1
            else:
                what = (self.shape[node.name], node.detail, *(self.hash[name] for name in node.inputs))
            self.hash[node.name] = hash(what)

    def _shape(self, node: GraphNode, lines: list[str]) -> str:
        """The statement's right side with the names of its inputs replaced by their numbers."""
        if node.op == "placeholder":
            return "placeholder"
        numbers = {name: f"${i}" for i, name in enumerate(node.inputs)}
        line = lines[node.line - 1]
        value = line.partition(" = ")[2] if " = " in line else line.strip()
        value = value.split(";", 1)[0].split("  #", 1)[0].strip()
        return _WORD.sub(lambda match: numbers.get(match[0], match[0]), value)


def _kind(node: GraphNode) -> str:
    """Only nodes of one kind can be the same."""
    return node.target if node.op != "placeholder" else "placeholder"


class _Matcher:
    def __init__(self, before: _Side, after: _Side) -> None:
        self.before, self.after = before, after
        self.to_after: dict[str, str] = {}
        self.to_before: dict[str, str] = {}

    def diff(self) -> GraphDiff:
        self._by_expression()
        self._by_agreement()
        changed = []
        for name, other in self.to_after.items():
            if what := self._what_changed(self.before.nodes[name], self.after.nodes[other]):
                changed.append(NodeChange(self.before.nodes[name], self.after.nodes[other], what))
        return GraphDiff(
            added=tuple(node for node in self.after.graph.nodes if node.name not in self.to_before),
            removed=tuple(node for node in self.before.graph.nodes if node.name not in self.to_after),
            changed=tuple(sorted(changed, key=lambda change: self.after.index[change.after.name])),
            pairs=tuple(self.to_after.items()),
        )

    def _match(self, name: str, other: str) -> None:
        self.to_after[name], self.to_before[other] = other, name

    def _by_expression(self) -> None:
        """Equal expressions, those with the same name first, then in the order in which they are."""
        buckets: dict[int, list[str]] = defaultdict(list)
        for name in self.before.nodes:
            buckets[self.before.hash[name]].append(name)
        late = []
        for name, hash_ in self.after.hash.items():
            if name in buckets.get(hash_, ()):
                buckets[hash_].remove(name)
                self._match(name, name)
            else:
                late.append((name, hash_))
        for name, hash_ in late:
            if buckets.get(hash_):
                self._match(buckets[hash_].pop(0), name)

    def _by_agreement(self) -> None:
        """The best pairs of what is left; each makes others plain, which are looked at next, the best of all first."""
        seen: set[tuple[str, str]] = set()  # what changes the score of such a pair brings it up again
        # Most partners are in the same place; what they leave is looked at from further away.
        for near in itertools.chain((1, 4), itertools.repeat(_NEAR)):
            left: dict[str, list[str]] = defaultdict(list)
            for name, node in self.before.nodes.items():
                if name not in self.to_after:
                    left[_kind(node)].append(name)
            queue: list[tuple[float, int, str, str]] = []
            for other, node in self.after.nodes.items():
                if other not in self.to_before and (group := left.get(_kind(node))):
                    place = bisect.bisect(group, self.after.index[other], key=self.before.index.__getitem__)
                    for name in group[max(0, place - near) : place + near]:
                        if (name, other) not in seen:
                            seen.add((name, other))
                            self._propose(queue, name, other)
            heapq.heapify(queue)
            before = len(self.to_after)
            while queue:
                _, _, name, other = heapq.heappop(queue)
                if name not in self.to_after and other not in self.to_before:
                    self._match(name, other)
                    self._look_around(queue, name, other)
            if len(self.to_after) == before and near == _NEAR:
                return

    def _propose(self, queue: list[tuple[float, int, str, str]], name: str, other: str) -> bool:
        score = self._agreement(name, other)
        if score >= 2:
            queue.append((-score, self.after.index[other], name, other))
        return score >= 2

    def _look_around(self, queue: list[tuple[float, int, str, str]], name: str, other: str) -> None:
        """A new pair speaks for its inputs, one by one, and for those of its users that do the same."""
        pairs = list(zip(self.before.nodes[name].inputs, self.after.nodes[other].inputs, strict=False))
        users, others = self.before.users[name], self.after.users[other]
        if len(users) <= _NEAR and len(others) <= _NEAR:
            pairs += [(user, another) for user in users for another in others]
        for one, another in pairs:
            if one in self.to_after or another in self.to_before:
                continue
            if _kind(self.before.nodes[one]) != _kind(self.after.nodes[another]):
                continue
            if self._propose(queue, one, another):
                heapq.heappush(queue, queue.pop())

    def _agreement(self, name: str, other: str) -> float:
        before, after = self.before.nodes[name], self.after.nodes[other]
        if before.op == "output" == after.op:
            return 100
        to_after = self.to_after
        score = 0.0
        for a, b in zip(before.inputs, after.inputs, strict=False):
            if to_after.get(a) == b:
                score += 2
        users, others = self.before.users.get(name), self.after.users.get(other)
        if users and others:
            score += 2 * self._paired(users, others)
        return (
            score
            + 1.5 * (name == other)
            + (before.detail == after.detail)
            + (self.before.places[name] == self.after.places[other] != "")
            + 0.5 * (self.before.shape[name] == self.after.shape[other])
        )

    def _paired(self, names: list[str], others: list[str]) -> int:
        if len(names) == len(others) == 1:
            return self.to_after.get(names[0]) == others[0]
        return len({self.to_after.get(name) for name in names} & set(others))

    def _what_changed(self, before: GraphNode, after: GraphNode) -> tuple[str, ...]:
        what = []
        if before.target != after.target and before.op != "placeholder":
            what.append("target")
        if [self.to_after.get(name) for name in before.inputs] != list(after.inputs):
            what.append("inputs")
        elif self.before.shape[before.name] != self.after.shape[after.name]:
            what.append("arguments")
        if before.detail != after.detail:
            what.append("type")
        return tuple(what)
