"""Why a job does not go on: which collective waits, and which ranks are missing there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Waiting:
    """A collective that a rank has begun and that has not ended."""

    group: str
    number: int
    """In its group, from 1."""
    operation: str
    sizes: str
    """The sizes of its inputs, as PyTorch prints them."""
    since_ns: int
    """Nanoseconds since the epoch."""
    file: str
    line: int


@dataclass(frozen=True)
class RankState:
    """What one rank does.

    Args:
        rank: None for a process that is not known to be a rank.
        machine: The ranks of its machine.
        file, line: The user's innermost line; an empty file if there is none, or the stack is not known.
        collective: The function of `torch.distributed` that its main thread is in; empty if it is in none.
        compiling: What it compiles, in words; empty if it does not, or the stack is not known.
        groups: The ranks of each process group, by its name.
        reached: The number of the last collective that it has begun, by group; empty if there are no records.
        unknown: Why its stack is not known.
    """

    pid: int
    rank: int | None = None
    world: int = 0
    machine: tuple[int, ...] = ()
    file: str = ""
    line: int = 0
    function: str = ""
    collective: str = ""
    compiling: str = ""
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    run: str = ""
    unknown: str = ""


@dataclass(frozen=True)
class Hang:
    """A collective that does not end.

    Args:
        waiting: The ranks that wait in it.
        missing: Ranks of the group that have not come to it.
        differing: By rank the operation and its place, where ranks have begun different operations as the same
            collective.
    """

    operation: str
    group: str
    number: int
    file: str
    line: int
    since_ns: int
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    differing: Mapping[int, str] = field(default_factory=dict)


def dead_of(states: Sequence[RankState]) -> list[int]:
    """The ranks of this machine that have no process: they have ended, or never begun."""
    return sorted({rank for state in states for rank in state.machine} - {state.rank for state in states})


def hangs_of(states: Sequence[RankState]) -> list[Hang]:
    """One for each group in which ranks wait and others are missing, or do something else.

    By the records of the ranks; without them, by the functions that their main threads are in.
    """
    ranks = {state.rank: state for state in states if state.rank is not None}
    if not any(state.reached for state in ranks.values()):
        return _by_stacks(ranks)
    first: dict[str, int] = {}
    for state in ranks.values():
        for one in state.waiting:
            first[one.group] = min(one.number, first.get(one.group, one.number))
    found = [_of_group(group, number, ranks) for group, number in first.items()]
    return sorted((hang for hang in found if hang.missing or hang.differing), key=lambda hang: hang.since_ns)


def _of_group(group: str, number: int, ranks: Mapping[int, RankState]) -> Hang:
    there = {
        rank: one
        for rank, state in ranks.items()
        for one in state.waiting
        if (one.group, one.number) == (group, number)
    }
    members = next((list(ranks[rank].groups[group]) for rank in there if group in ranks[rank].groups), list(ranks))
    missing = [rank for rank in members if rank not in ranks or ranks[rank].reached.get(group, 0) < number]
    kinds = defaultdict(list)
    for rank, one in there.items():
        sizes = one.sizes if one.operation in _EQUAL_SIZES else ""
        kinds[one.operation, sizes].append(rank)
    several = len(kinds) > 1
    words = {
        rank: (f"{one.operation} of {one.sizes}" if one.operation in _EQUAL_SIZES else one.operation)
        for rank, one in sorted(there.items())
    }
    shown = there[min(there)]
    return Hang(
        shown.operation, group, number, shown.file, shown.line, min(one.since_ns for one in there.values()),
        tuple(sorted(there)), tuple(sorted(missing)), words if several else {},
    )  # fmt: skip


_EQUAL_SIZES = frozenset({"all_reduce", "broadcast", "reduce", "_allgather_base", "all_gather"})
"""Collectives to which each rank gives as much."""


def _by_stacks(ranks: Mapping[int, RankState]) -> list[Hang]:
    """Ranks in `torch.distributed`, and those that are not; groups are not known."""
    there = {rank: state for rank, state in sorted(ranks.items()) if state.collective}
    if not there:
        return []
    world = max(state.world for state in ranks.values())
    missing = sorted({*ranks, *range(world)} - {*there})
    calls = {rank: state.collective for rank, state in there.items()}
    several = len(set(calls.values())) > 1
    if not missing and not several:
        return []
    shown = there[min(there)]
    return [
        Hang(shown.collective, "", 0, shown.file, shown.line, 0, tuple(there), tuple(missing), calls if several else {})
    ]
