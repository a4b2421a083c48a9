"""Which operations of a graph came from which of an earlier one, where a system keeps no record of it.

Most passes keep the names of the values that they do not replace.  So what computes a value in the later graph came
from what computed it in the earlier one, up to the values that both graphs have.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from irscope.capture.operation_graphs import ITEM, Operation

_Sources = dict[str, tuple[str, ...]]


def sources_of(
    before: Sequence[Operation], after: Sequence[Operation], hint: Callable[[Operation], str] = lambda one: ""
) -> _Sources:
    """Maps each operation of the later graph to the names of the earlier operations that it came from.

    Args:
        hint: For an operation whose value is new: a value of the earlier graph that it stands for, by what the system
            calls it; empty if nothing tells.
    """
    return _Rewrite(before, after, hint).sources()


class _Rewrite:
    def __init__(
        self, before: Sequence[Operation], after: Sequence[Operation], hint: Callable[[Operation], str]
    ) -> None:
        self._before = {one.name: one for one in before}
        self._order = {one.name: number for number, one in enumerate(before)}
        self._after = {one.name: one for one in after}
        self._stands_for = {one.name: self._old_name(one, hint) for one in after}
        self._kept = frozenset(name for name in self._stands_for.values() if name)
        self._users: dict[str, list[str]] = {name: [] for name in self._after}
        for one in after:
            for name in one.inputs:
                self._users[name].append(one.name)

    def _old_name(self, one: Operation, hint: Callable[[Operation], str]) -> str:
        if one.name in self._before:
            return one.name
        hinted = hint(one)
        return hinted if hinted in self._before else ""

    def sources(self) -> _Sources:
        own, handed = self._of_old_values()
        for name, operation in self._after.items():
            if operation.target == ITEM and name not in own and operation.inputs[0] in own:
                own[name] = handed[name] = own[operation.inputs[0]]
        for name in reversed(self._after):  # users come after what they use
            if name not in own:
                given = (handed.get(user, own.get(user, ())) for user in self._users[name])
                own[name] = handed[name] = tuple(dict.fromkeys(itertools.chain.from_iterable(given)))
        for name, operation in self._after.items():
            if not own[name]:  # a new operation between two values that both graphs have
                near = [*self._users[name], *operation.inputs]
                own[name] = next((own[other] for other in near if own.get(other)), ())
        return {name: self._fitting(self._after[name], sources) for name, sources in own.items()}

    def _of_old_values(self) -> tuple[_Sources, _Sources]:
        """Says what computed each value that both graphs have, and what it hands to new values."""
        own: _Sources = {}
        handed: _Sources = {}
        for name, old in self._stands_for.items():
            if not old:
                continue
            whole = self._computed(old)
            is_same = self._before[old].target == self._after[name].target
            has_new = any(not self._stands_for[taken] for taken in self._after[name].inputs)
            handed[name] = tuple(source for source in whole if source != old) if is_same else whole
            own[name] = (old,) if is_same and has_new else whole
        return own, handed

    def _computed(self, old: str) -> tuple[str, ...]:
        """What computed a value in the earlier graph, back to the values that the later graph has, too."""
        found: dict[str, None] = {}
        todo = [old]
        while todo:
            name = todo.pop()
            if name in found or (name in self._kept and name != old):
                continue
            found[name] = None
            todo += self._before[name].inputs
        return tuple(sorted(found, key=self._order.__getitem__))

    def _fitting(self, one: Operation, sources: tuple[str, ...]) -> tuple[str, ...]:
        """Operations came from operations, and constants from constants where there are any."""
        is_call = one.op == "call_function"
        alike = tuple(name for name in sources if (self._before[name].op == "call_function") == is_call)
        return alike or sources


def inherited(operation: Operation, sources: Mapping[str, Sequence[str]], before: Mapping[str, Operation]) -> Operation:
    """The operation with the lines and the module of what it came from: of the one that computed its value, or the last."""
    names = sources.get(operation.name, ())
    told = [before[name] for name in reversed(names) if before[name].frames]
    first = next((one for one in told if one.name == operation.name), told[0] if told else None)
    frames = operation.frames or (first.frames if first else ())
    module = operation.module or (first.module if first else None)
    return Operation(
        operation.name, operation.op, operation.target, operation.inputs, operation.written, operation.value, frames,
        module, tuple(names), operation.note,
    )  # fmt: skip
