"""What the pieces of a step take without the profiler.

A step is slower while it is profiled.  So it is also timed without the profiler, which is the truth of the step; the trace
says only how to divide it.  The profiler writes each span in what is around the span: a copy or a product is as long
in the trace as it is alone, and the Python around it is longer.  So what it took more is taken from where the spans are.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from irscope.profiling.profile import MeasuredProgram
from irscope.profiling.timeline import Segment, Timeline

_LEAST_PART = 0.5
"""The least part of a piece of a step that is left to it; on a busy machine the profiler is not all that makes
profiled steps slower."""


def host_seconds(found: Timeline, programs: Sequence[MeasuredProgram]) -> list[float]:
    """For each segment: seconds of the host in which the device does nothing, without the profiler.

    Where a program was not timed without the profiler, as in a trace from elsewhere, they are as in the trace.
    """
    host = _idle_seconds(found.busy, found.segments)
    for number, program in enumerate(programs):
        if program.plain_seconds is not None:
            mine = [at for at, segment in enumerate(found.segments) if segment.around.program == number]
            if mine:
                _take_out(found, number, program.plain_seconds, mine, host)
    return host


def _idle_seconds(busy: Sequence[tuple[float, float]], segments: Sequence[Segment]) -> list[float]:
    """The seconds of each segment that are in none of the intervals, which are sorted and do not overlap."""
    if not busy:
        return [segment.end - segment.start for segment in segments]
    idle: list[float] = []
    number, last = 0, float("inf")
    for segment in segments:
        start, end = segment.start, segment.end
        if start < last:  # mostly they come one after the other
            number = max(0, bisect.bisect_left(busy, (start,)) - 1)
        last, seconds = start, end - start
        while number < len(busy) and busy[number][1] <= start:
            number += 1
        at = number
        while at < len(busy) and busy[at][0] < end:
            begin, until = busy[at]
            seconds -= min(end, until) - max(start, begin)
            at += 1
        idle.append(seconds)
    return idle


def _take_out(found: Timeline, number: int, plain: float, mine: list[int], host: list[float]) -> None:
    """Makes the segments of one program sum up to what its steps took without the profiler."""
    steps = [at for at, (program, _) in enumerate(found.steps) if program == number]
    target = plain * len(steps)
    more = sum(found.steps[at][1] for at in steps) - target
    spans = sum(found.segments[at].spans for at in mine)
    if more > 0 and spans > 0:
        for at in mine:
            seconds = host[at]
            host[at] = max(_LEAST_PART * seconds, seconds - more / spans * found.segments[at].spans)
    target -= sum(overlap(found.busy, found.spans[at]) for at in steps)
    rest = sum(host[at] for at in mine)
    factor = max(0.0, target) / rest if rest > 0 else 0.0
    for at in mine:
        host[at] *= factor


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
