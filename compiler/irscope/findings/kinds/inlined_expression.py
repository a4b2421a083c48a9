"""An expression that Inductor computes again in each of its uses, until a kernel has far more operations than the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from irscope.findings import signals
from irscope.findings.detector import Detector
from irscope.findings.kinds.missed_fusion import FusionLog, origin_of
from irscope.findings.kinds.performance_hint import KIND
from irscope.findings.moment import Moment
from irscope.findings.places import at_origin
from irscope.protocol import Finding, Origin
from irscope.vocabulary.records import dataclass

_LEAST_OPERATIONS = 1000
_LEAST_GROWTH = 20
"""Operations of a loop body for each node of the graph that it comes from; most bodies have 1 to 3, loads included."""


@dataclass(frozen=True)
class Body:
    """The loop body of one node of a schedule.

    Args:
        operations: How many operations it has.
        nodes: From how many nodes of the graph it comes.
        lines: The user's lines of these.
    """

    operations: int
    nodes: int
    lines: tuple[Origin, ...]


def bodies_of(log: FusionLog) -> list[Body]:
    """The bodies of a schedule's generated loops.  Runs inside Inductor, while the schedule is alive."""
    parts = [part for node in log.nodes or () for part in node.get_nodes()]
    return [body for part in parts if (body := _body(part)) is not None]


def _body(part: Any) -> Body | None:
    operations = getattr(getattr(part, "_body", None), "op_counts", None)
    if not operations or (total := sum(operations.values())) < _LEAST_OPERATIONS:
        return None
    nodes = list(getattr(part.node, "origins", ()))
    return Body(total, len(nodes), tuple(line for node in nodes if (line := origin_of(node)) is not None))


def detect(moment: Moment, bodies: Sequence[Body]) -> Iterator[Finding]:
    """The largest of the bodies that have grown, at the line that most of it comes from."""
    grown = [body for body in bodies if body.lines and body.operations >= _LEAST_GROWTH * max(1, body.nodes)]
    if not grown:
        return
    largest = max(grown, key=lambda body: body.operations)
    ((line, _),) = Counter(largest.lines).most_common(1)
    yield at_origin(
        moment,
        line,
        kind=KIND.id,
        code="inlined-expression",
        message=f"Inductor computes this again in each of its uses: {largest.nodes} operations of the graph become {largest.operations:,} in one kernel.",
        explanation="A small result is not written to memory, but inlined into what uses it. Where each step uses results of the steps before twice, the kernel doubles with each step, and so does compile time.",
        hints=(
            "Have results written to memory sooner: `torch._inductor.config.realize_reads_threshold = 1` and `torch._inductor.config.realize_opcount_threshold = 5`.",
        ),
        severity=KIND.severity,
    )


DETECTORS = (Detector(signals.FUSED, lambda moment, log: detect(moment, bodies_of(log))),)
