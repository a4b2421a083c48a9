"""One step of a timeline as a picture shows it: what the host did, what the device did, one piece after the other.

Times are those of the trace, in which the profiler takes part; the sums of a `Profile` are without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from irscope.profiling.joining import Call
from irscope.profiling.plain_time import overlap
from irscope.profiling.profile import StepPiece
from irscope.profiling.span_roles import kernel_name
from irscope.profiling.timeline import Kind, Segment, Timeline

_MOST = 4000
"""Pieces; of more the shortest ones of the host are left out."""


def one_step(
    found: Timeline, calls: Mapping[int, Call], where: Callable[[Segment], str], typical: float | None = None
) -> tuple[StepPiece, ...]:
    """The step of median length of each program, one after the other.

    Args:
        calls: As `Joined.calls_of` gives them.
        where: The place that owns a segment which is not a kernel's.
        typical: The step whose seconds are nearest is taken instead.
    """
    begins: dict[int, float] = {}
    offset = 0.0
    for number in _chosen(found, typical):
        begin, end = found.spans[number]
        begins[number] = begin - offset
        offset += end - begin
    host: list[StepPiece] = []
    device: list[StepPiece] = []
    for segment in sorted(found.segments, key=lambda one: one.start):
        if (zero := begins.get(segment.around.step)) is None:
            continue
        call = calls.get(id(segment))
        place = f"{call.origins[0].file}:{call.origins[0].line}" if call and call.origins else where(segment)
        name, kind = call.kernel if call else kernel_name(segment.name), segment.kind
        about = (name, segment.around.compile, segment.around.backward, place)
        if segment.device is not None:
            device.append(StepPiece("device", segment.device_start - zero, segment.device, kind.value, *about))
            kind = kind if kind is Kind.COPY else Kind.LAUNCH
        if segment.end > segment.start:
            _add(host, StepPiece("host", segment.start - zero, segment.end - segment.start, kind.value, *about))
    if len(host) + len(device) > _MOST:
        longest = sorted(host, key=lambda one: -one.seconds)[: max(0, _MOST - len(device))]
        host = sorted(longest, key=lambda one: one.start)
    return (*host, *sorted(device, key=lambda one: one.start)[:_MOST])


def device_idle(found: Timeline) -> float | None:
    """Seconds of all steps in which the device does nothing; None without a device."""
    if not found.has_device:
        return None
    return sum(end - start - overlap(found.busy, (start, end)) for start, end in found.spans)


def _chosen(found: Timeline, typical: float | None) -> list[int]:
    """The number of the step of median length, by program."""
    if typical is not None and found.steps:
        return [min(range(len(found.steps)), key=lambda number: abs(found.steps[number][1] - typical))]
    by_program: dict[int, list[tuple[float, int]]] = {}
    for number, (program, seconds) in enumerate(found.steps):
        by_program.setdefault(program, []).append((seconds, number))
    return [sorted(steps)[len(steps) // 2][1] for _, steps in sorted(by_program.items())]


def _add(pieces: list[StepPiece], one: StepPiece) -> None:
    """A piece that goes on where the one before it ends, and is of the same, makes that longer."""
    last = pieces[-1] if pieces else None
    if last is not None and _same(last, one) and abs(last.start + last.seconds - one.start) < 1e-9:
        pieces[-1] = StepPiece(last.row, last.start, last.seconds + one.seconds, *_what(last))
    else:
        pieces.append(one)


def _what(one: StepPiece) -> tuple[str, str, str, bool, str]:
    return one.kind, one.name, one.compile, one.backward, one.where


def _same(a: StepPiece, b: StepPiece) -> bool:
    return a.row == b.row and a.kind != Kind.KERNEL.value and _what(a) == _what(b)
