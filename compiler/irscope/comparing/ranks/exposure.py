"""Collectives and what runs beside them, as rows and words: the terminal and the panel say the same."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.protocol import BucketSplit, Collective, CollectiveOverlap
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count, flops, size

_MOST_NAMED = 3
_PREFIXES = ("extern_kernels.", "torch.ops.", "aten.")


@dataclass(frozen=True)
class OverlapRow:
    """Collectives of one line that run beside the same.

    Args:
        first: The first of them; the others differ in their places in the code alone.
        calls: How many there are.
        sent: Bytes of all of them; None if one is not known.
    """

    first: CollectiveOverlap
    calls: int
    sent: int | None

    @property
    def title(self) -> str:
        """``all_reduce``, or ``all_reduce, backward``."""
        return self.first.operation + _step(self.first.stage)


@dataclass(frozen=True)
class CollectiveRow:
    """Collectives of one line that give the same.

    Args:
        first: The first of them.
        calls: How many there are.
        sent: Bytes of all of them; None if one is not known.
    """

    first: Collective
    calls: int
    sent: int | None

    @property
    def title(self) -> str:
        """``all_reduce (sum)``, or ``all_reduce (sum), backward``."""
        reduction = f" ({self.first.reduction})" if self.first.reduction else ""
        return self.first.operation + reduction + _step(self.first.stage)


def collective_rows(collectives: Sequence[Collective]) -> list[CollectiveRow]:
    """The collectives that send most come first."""
    alike: dict[tuple[object, ...], list[Collective]] = {}
    for one in collectives:
        key = one.operation, one.reduction, one.tensor, one.file, one.line, _step(one.stage)
        alike.setdefault(key, []).append(one)
    rows = [CollectiveRow(each[0], len(each), sent_by(each)) for each in alike.values()]
    return sorted(rows, key=lambda row: -(row.sent or 0))


def overlap_rows(overlaps: Sequence[CollectiveOverlap]) -> list[OverlapRow]:
    """The collectives that run beside nothing come first, then those that send most."""
    alike: dict[tuple[object, ...], list[CollectiveOverlap]] = {}
    for one in overlaps:
        key = (
            one.operation, one.reduction, one.group, one.file, one.line, one.operations, one.work, _kind(one.stage),
            tuple((move.passed, move.operations) for move in one.moves),
        )  # fmt: skip
        alike.setdefault(key, []).append(one)
    rows = [OverlapRow(each[0], len(each), sent_by(each)) for each in alike.values()]
    return sorted(rows, key=lambda row: (row.first.operations != 0, -(row.sent or 0)))


def sent_by(collectives: Sequence[Collective] | Sequence[CollectiveOverlap]) -> int | None:
    """The bytes that they send together; None if one is not known."""
    known = [one.sent_bytes for one in collectives]
    return None if None in known else sum(each or 0 for each in known)


def bytes_text(sent: int | None) -> str:
    """``131 kB``, or that the size of a tensor is a symbol."""
    return "symbolic" if sent is None else size(sent)


def beside(one: CollectiveOverlap) -> str:
    """What runs beside it: ``2 (mm, cpp_fused_relu_0), 1.2 MB, 2.1 MFLOP``."""
    if one.operations is None:
        return "not waited for here"
    if one.operations == 0:
        return "nothing"
    more = ", …" if one.operations > _MOST_NAMED else ""
    facts = [f"{count(one.operations)} ({', '.join(map(_short, one.work[:_MOST_NAMED]))}{more})"]
    return ", ".join(facts + _costs(one.moved_bytes, one.flops))


def way(one: CollectiveOverlap) -> str:
    """How many operations were beside it on the way down: ``forward-graph 0 → reorder_for_locality 2 → output-code 0``;
    empty if the number stayed the same."""
    told = [(move.passed or _kind(move.stage), move.operations) for move in one.moves]
    if one.operations is not None and told and told[-1][1] != one.operations:
        told.append((_kind(one.stage), one.operations))
    return " → ".join(f"{name} {number}" for name, number in told) if len(told) > 1 else ""


def exposed_text(overlaps: Sequence[CollectiveOverlap]) -> str:
    """``2 of 3 collectives (33 kB of 49 kB) run beside nothing``."""
    exposed = [one for one in overlaps if one.operations == 0]
    part, whole = sent_by(exposed), sent_by(overlaps)
    sizes = "" if part is None or whole is None else f" ({size(part)} of {size(whole)})"
    whom = count(len(overlaps), "collective")
    if not exposed:
        return f"None of {whom} runs beside nothing"
    return (
        f"{len(exposed)} of {whom}{sizes} {'runs' if len(exposed) == 1 else 'run'} beside nothing: the rank only waits"
    )


def beside_bucket(one: BucketSplit) -> str:
    """``the backward of 2 parts: 5 operations, 6.3 MB``."""
    if not one.beside:
        return "nothing in this graph"
    facts = [count(one.operations, "operation"), *_costs(one.moved_bytes, one.flops)]
    return f"the backward of {count(len(one.beside), 'part')}: {', '.join(facts)}"


def _costs(moved: int | None, number: int | None) -> list[str]:
    return [*([size(moved)] if moved else []), *([flops(number)] if number else [])]


def _short(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.removesuffix(".default")


def _kind(stage: str) -> str:
    return stage.rpartition("/")[2]


def _step(stage: str) -> str:
    """What tells the collectives of a backward from those of its forward, which may be of the same line."""
    return ", backward" if "backward" in _kind(stage) else ""
