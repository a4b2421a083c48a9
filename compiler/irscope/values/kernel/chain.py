"""Which other launches a launch needs: some memory holds no node's value, as the partial sums of a reduction that is split, and
what an atomic operation adds to.  The launches that wrote it run before, and those that complete it run after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.ir.launches import Access, Launch, Tensor, accesses_of, head_of


class Chain:
    """The launches of one output code.

    Args:
        launches: All of the output code, in order.
        text_of: The text of a kernel.
        nodes: Buffer → node.
    """

    def __init__(self, launches: Sequence[Launch], text_of: Callable[[str], str], nodes: Mapping[str, str]) -> None:
        self._launches, self._text_of, self._nodes = launches, text_of, nodes
        self._accesses: dict[str, Access] = {}

    def _access(self, launch: Launch) -> Access:
        if launch.kernel not in self._accesses:
            self._accesses[launch.kernel] = accesses_of(self._text_of(launch.kernel))
        return self._accesses[launch.kernel]

    def _tensors(self, launch: Launch) -> dict[str, Tensor]:
        """The tensors of a launch by parameter."""
        try:
            head = head_of(self._text_of(launch.kernel), launch.kernel)
        except LookupError:
            return {}
        return {
            name: each
            for name, each in zip(head.parameters, launch.arguments, strict=False)
            if isinstance(each, Tensor)
        }

    def of(self, launch: Launch) -> tuple[list[Launch], list[Launch], list[str]]:
        """The launches before it, those after it, each in order, and the buffers that it writes in part."""
        after, partial = self._after(launch)
        at, last = self._launches.index(launch), max([self._launches.index(each) for each in after], default=-1)
        needed = self._before([launch, *after])
        numbers = {number for number in needed if number < at} | {at}
        between = {number for number in needed if at < number < last} | {self._launches.index(each) for each in after}
        return (
            [self._launches[number] for number in sorted(numbers - {at})],
            [self._launches[number] for number in sorted(between)],
            partial,
        )

    def _before(self, launches: Sequence[Launch]) -> set[int]:
        """The launches that write what these read, if that is not a node's value."""
        found: set[int] = set()
        waiting = list(launches)
        while waiting and len(found) < _MOST:
            last = waiting.pop()
            access, at = self._access(last), self._launches.index(last)
            for name, tensor in self._tensors(last).items():
                is_whole = tensor.holds in self._nodes and name not in access.added_to
                if not tensor.holds or tensor.holds == "0" or name not in access.read or is_whole:
                    continue
                writer = next((number for number in range(at - 1, -1, -1) if self._writes(number, tensor.memory)), None)
                if writer is not None and writer not in found:
                    found.add(writer)
                    waiting.append(self._launches[writer])
        return found

    def _after(self, launch: Launch) -> tuple[list[Launch], list[str]]:
        found: dict[int, Launch] = {}
        partial: list[str] = []
        waiting = [launch]
        while waiting and len(found) < _MOST:
            last = waiting.pop()
            access, at = self._access(last), self._launches.index(last)
            for name, tensor in self._tensors(last).items():
                if name not in access.written:
                    continue
                uses = ((number, self._use(number, tensor.memory)) for number in range(at + 1, len(self._launches)))
                number, use = next(((number, use) for number, use in uses if use), (0, ""))
                if use == "added to" or (use == "read" and tensor.name not in self._nodes):
                    partial += [tensor.name] if last is launch else []
                    if number not in found:
                        found[number] = self._launches[number]
                        waiting.append(self._launches[number])
        return list(found.values()), partial

    def _writes(self, number: int, memory: str) -> bool:
        launch = self._launches[number]
        return any(
            each.memory == memory and name in self._access(launch).written
            for name, each in self._tensors(launch).items()
        )

    def _use(self, number: int, memory: str) -> str:
        """What a launch does first with a memory."""
        launch = self._launches[number]
        access = self._access(launch)
        names = [name for name, each in self._tensors(launch).items() if each.memory == memory]
        if not names:
            return ""
        return "added to" if access.added_to & set(names) else "read" if access.read & set(names) else "written"


_MOST = 6
"""Launches that are run for one."""
