"""Missed fusion: one generated kernel reads what another one has just written, and Inductor says why they are two."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, Protocol

from irscope.findings import signals
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_origin
from irscope.internals.scheduler_traffic import bytes_accessed
from irscope.ir.fusion_reasons import Reasons, reason_text
from irscope.protocol import Finding, Origin, Related, Severity
from irscope.usercode.source import range_of_line
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import size

KIND = FindingKind(
    id="missed-fusion",
    label="Missed fusion",
    short=("missed fusion", "missed fusions"),
    lanes=DEEP_ONLY,
    severity=Severity.HINT,
    order=80,
)
_MOST = 40
# Reasons that follow from another pair that was not fused, or that are about pairs which share nothing.
_CONSEQUENCES = ("intermediate nodes between", "no shared data", "will create cycle", "nodes share no")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


@dataclass(frozen=True)
class Refusal:
    """Two nodes of the final schedule, the first of which feeds the second.  ``reason`` is Inductor's.  On a CPU they are
    two ``loop``s, perhaps of one function; else each is a ``kernel``.

    If the second is a call into a library, ``what`` is its name, and ``moved`` bytes go through memory where ``needed``
    would do: the first writes more than it reads, as a weight that is converted from int8.
    """

    producer: Origin
    consumer: Origin
    reason: str
    what: str = "kernel"
    moved: int = 0
    needed: int = 0


class FusionLog(Protocol):
    """What a schedule's fusion came to: the scheduler's nodes after it, and the reasons of pairs that were refused."""

    nodes: Any
    reasons: Reasons


def refusals_of(log: FusionLog) -> list[Refusal]:
    """The pairs of generated kernels that are left after fusion, of which one reads what the other has just written.

    Then the calls into libraries that read what one of these kernels has made larger.  Runs inside Inductor, while the
    schedule is alive.
    """
    return [*_left(log.nodes, log.reasons), *_materialized(log.nodes)]


# Inductor's words that need some more.
_WORDS = {"memory deps did not match": "it reads the values in a different order than they are written"}


def _in_words(reason: str) -> str:
    return f"{_WORDS[reason]} ({reason})" if reason in _WORDS else reason


def detect(moment: Moment, refusals: list[Refusal], target: str = "") -> Iterator[Finding]:
    """A finding at the consumer's line for each pair of which both are the user's.

    Args:
        target: The device that they were predicted for; empty: the run's own.
    """
    for refusal in refusals:
        here, there = refusal.consumer, refusal.producer
        code, message, explanation, hints = _materialized_words(refusal) if refusal.moved else _words(refusal)
        finding = at_origin(
            moment,
            here,
            kind=KIND.id,
            code=f"{code}-predicted" if target else code,
            message=message,
            targets=(target,) if target else (),
            explanation=explanation,
            hints=hints,
            severity=KIND.severity,
        )
        related = Related(there.file, range_of_line(there.file, there.line), "what it reads is written here")
        yield dataclasses.replace(finding, related=(related,))


def _words(refusal: Refusal) -> tuple[str, str, str, tuple[str, ...]]:
    """Code, message, explanation and hints."""
    line = refusal.producer.line
    what = f"another {refusal.what} of this line" if refusal.consumer == refusal.producer else f"line {line}"
    return (
        "missed-fusion",
        f"Not fused with {what}, whose result it reads: {_in_words(refusal.reason)}.",
        f"The value goes through memory between the two {refusal.what}s. The text after the colon is Inductor's reason for not fusing them.",
        (),
    )


def _materialized_words(refusal: Refusal) -> tuple[str, str, str, tuple[str, ...]]:
    line = refusal.producer.line
    what = "this line" if refusal.consumer == refusal.producer else f"line {line}"
    return (
        "materialized-operand",
        f"What {refusal.what} reads is made larger by {what} and written to memory first: {size(refusal.moved)} move "
        f"where {size(refusal.needed)} would do.",
        "A kernel writes the larger tensor, and the library reads it again. The library itself could read only the smaller "
        "one if it converted what it reads.",
        _FUSES,
    )


_FUSES = (
    "For int8 weights of (out, in), write `x @ q.t().to(x.dtype) * scale`: Inductor makes one call of it that reads int8.",
    "Or keep them as (in, out), scale the result, and compile with mode='max-autotune': Triton's template converts what it reads.",
)
_LEAST, _SHARE = 1 << 20, 0.75


def _materialized(nodes: Any) -> Iterator[Refusal]:
    """Calls into libraries that multiply matrices, and have an operand of at least 1 MiB that a kernel has written from at
    most three quarters as many bytes."""
    writer = {name: node for node in nodes for name in node.get_buffer_names() if not node.is_extern()}
    for node in nodes:
        call = str(getattr(node.node, "python_kernel_name", None) or "") if node.is_extern() else ""
        if call.rpartition(".")[2] not in _PRODUCTS:
            continue
        for name in dict.fromkeys(dep.name for dep in node.read_writes.reads if dep.name in writer):
            read, written = (sum(bytes_accessed(writer[name], is_read).values()) for is_read in (True, False))
            edge = _edge(writer[name], node)
            if edge and written >= _LEAST and 0 < read <= _SHARE * written:
                yield Refusal(*edge, "", call.rpartition(".")[2], read + 2 * written, read)


_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "bias_addmm", "convolution", "_int_mm", "_linear_pointwise"})


def _left(nodes: Any, reasons: Reasons) -> list[Refusal]:
    """The pairs of generated kernels in the final schedule that are producer and consumer and were refused."""
    if not reasons:
        return []
    writer = {name: node for node in nodes for name in node.get_buffer_names() if not node.is_extern()}
    found: dict[Refusal, None] = {}
    for node in nodes:
        if node.is_extern() or len(found) >= _MOST:
            continue
        feeding = {
            writer[dep.name].get_name(): writer[dep.name] for dep in node.read_writes.reads if dep.name in writer
        }
        for name, producer in feeding.items():
            why = reasons.get((name, node.get_name())) or reasons.get((node.get_name(), name))
            if why is not None and not why[0].startswith(_CONSEQUENCES) and (edge := _edge(producer, node)):
                device = node.get_device()
                what = "loop" if device is not None and device.type == "cpu" else "kernel"
                found[Refusal(*edge, reason_text(*why), what)] = None
    return list(found)


def _edge(producer: Any, consumer: Any) -> tuple[Origin, Origin] | None:
    """The user lines of an operation in the producer and of one in the consumer that uses its result."""
    made = _fx_nodes(producer)
    for node in _fx_nodes(consumer):
        for used in node.all_input_nodes:
            if used in made and (there := origin_of(used)) and (here := origin_of(node)):
                return there, here
    return None


def _fx_nodes(node: Any) -> dict[Any, None]:
    return {fx_node: None for part in node.get_nodes() for fx_node in getattr(part.node, "origins", ())}


def origin_of(fx_node: Any) -> Origin | None:
    """The user's innermost line of a node of a graph."""
    frames = [Origin(m["file"], int(m["line"])) for m in _FRAME.finditer(fx_node.meta.get("stack_trace") or "")]
    mine = [frame for frame in frames if is_user_file(frame.file)]
    return mine[-1] if mine else None


DETECTORS = (
    Detector(signals.FUSED, lambda moment, log: detect(moment, refusals_of(log))),
    Detector(signals.FUSION_PREDICTED, lambda moment, target, refusals: detect(moment, refusals, target)),
)
