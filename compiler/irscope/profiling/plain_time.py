"""What the pieces of a step take without the profiler.

A step is slower while it is profiled.  So it is also timed without the profiler, which is the truth of the step; the trace
says only how to divide it.  The profiler writes each span in what is around the span: a copy or a product is as long
in the trace as it is alone, and the Python around it is longer.  So what it took more is taken from where the spans are.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence

from irscope.profiling.profile import MeasuredProgram
from irscope.profiling.timeline import Segment, Timeline

_LEAST_PART = 0.5
"""Of a piece of a step that is left to it; on a busy machine the profiler is not all that makes profiled steps slower."""


def host_seconds(found: Timeline, programs: Sequence[MeasuredProgram]) -> dict[int, float]:
    """For each segment, by its ``id()``: seconds of the host in which the device does nothing, without the profiler.

    Where a program was not timed without the profiler, as in a trace from elsewhere, they are as in the trace.
    """
    host: dict[int, float] = {}
    by_program: dict[int, list[Segment]] = defaultdict(list)
    for segment in found.segments:
        host[id(segment)] = segment.end - segment.start - overlap(found.busy, (segment.start, segment.end))
        by_program[segment.around.program].append(segment)
    for number, segments in by_program.items():
        plain = programs[number].plain_seconds if number < len(programs) else None
        if plain is not None:
            _take_out(found, number, plain, segments, host)
    return host


def _take_out(found: Timeline, number: int, plain: float, segments: list[Segment], host: dict[int, float]) -> None:
    """Makes the segments of one program sum up to what its steps took without the profiler."""
    steps = [at for at, (program, _) in enumerate(found.steps) if program == number]
    target = plain * len(steps)
    more = sum(found.steps[at][1] for at in steps) - target
    spans = sum(segment.spans for segment in segments)
    if more > 0 and spans > 0:
        for segment in segments:
            seconds = host[id(segment)]
            host[id(segment)] = max(_LEAST_PART * seconds, seconds - more / spans * segment.spans)
    target -= sum(overlap(found.busy, found.spans[at]) for at in steps)
    rest = sum(host[id(segment)] for segment in segments)
    factor = max(0.0, target) / rest if rest > 0 else 0.0
    for segment in segments:
        host[id(segment)] *= factor


def overlap(busy: Sequence[tuple[float, float]], span: tuple[float, float]) -> float:
    """Seconds of a span that are in one of the intervals, which are sorted and do not overlap."""
    start, end = span
    # A key for their ends would be called for each interval that the search looks at; the one before may reach into the span.
    number = bisect.bisect_left(busy, (start,))
    found = max(0.0, min(busy[number - 1][1], end) - start) if number else 0.0
    while number < len(busy) and busy[number][0] < end:
        found += min(busy[number][1], end) - busy[number][0]
        number += 1
    return found
