"""From a timeline, and the run that it is of, to a `Profile`: every moment of a step gets its owner."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irscope.profiling.joining import Call, Joined, short_name
from irscope.profiling.profile import CudaGraphs, Gap, MeasuredKernel, MeasuredLine, MeasuredProgram, Profile
from irscope.profiling.timeline import Kind, Segment, Timeline, is_cpp_kernel, kernel_name
from irscope.protocol import Origin, Report

UNKNOWN = "unknown"
_ALLOCATING = ("empty", "empty_strided", "empty_like", "as_strided", "detach", "alias", "view", "reshape", "resize_")
"""Operators that a graph's generated code calls around its kernels: they compute nothing."""


@dataclass
class _Row:
    seconds: float = 0.0
    calls: int = 0
    bound: float | None = None
    origins: dict[Origin, None] = field(default_factory=dict)


@dataclass
class _Line:
    seconds: float = 0.0
    shared: float = 0.0
    bound: float | None = None
    calls: int = 0
    kernels: dict[str, None] = field(default_factory=dict)


def profile_of(
    found: Timeline,
    joined: Joined | None = None,
    report: Report | None = None,
    programs: Sequence[MeasuredProgram] = (),
    peaks: str = "",
) -> Profile:
    """The profile of a timeline.

    Parameters
    ----------
    joined, report
        The run it is of; None: it is from elsewhere, and nothing is known but the names in the trace.
    programs
        Those that the steps call, by their numbers.
    """
    sums = _Sums(found, joined, report, programs)
    for segment in found.segments:
        sums.add(segment)
    # The steps of one program are averaged, and a step of the script is one of each.
    each = max(1, sum(number == 0 for number, _ in found.steps)) if programs else max(1, len(found.steps))
    return sums.profile(each, programs, peaks)


class _Sums:
    def __init__(
        self, found: Timeline, joined: Joined | None, report: Report | None, programs: Sequence[MeasuredProgram]
    ) -> None:
        self._found, self._joined, self._report = found, joined, report
        self._programs = programs
        kernels = [one for one in found.segments if one.kind is Kind.KERNEL]
        self._calls: Mapping[int, Call] = joined.calls_of(kernels) if joined else {}
        self._kernels: dict[tuple[str, str], _Row] = defaultdict(_Row)
        self._lines: dict[Origin, _Line] = defaultdict(_Line)
        self._gaps: dict[tuple[str, str], float] = defaultdict(float)
        self._breaks = {
            compile.partition("#")[0]: f"{one.file}:{one.range.start.line}"
            for one in (report.findings if report else ())
            if one.kind == "graph-break"
            for compile in one.compiles
        }
        self._owned = self._device = 0.0

    def add(self, segment: Segment) -> None:
        """The time of a segment goes to its owner."""
        if segment.kind is Kind.KERNEL and not self._is_wrapper(segment):
            self._add_kernel(segment)
            return
        kind = Kind.WRAPPER if segment.kind is Kind.KERNEL else segment.kind
        self._add_host(segment, kind)

    def _add_host(self, segment: Segment, kind: Kind) -> None:
        """The time of the host in which the device does nothing."""
        seconds = segment.end - segment.start - _overlap(self._found.busy, segment)
        where = self._where(segment)
        own = min(seconds, _overlap(self._found.overhead, segment))
        if own > 0:
            self._gaps[Kind.PROFILER.value, ""] += own
            self._owned += own
        is_new = self._report is not None and bool(segment.around.compile) and not where
        self._gaps[UNKNOWN if is_new else kind.value, where or segment.name] += seconds - own
        self._owned += seconds - own if where else 0.0

    def _is_wrapper(self, segment: Segment) -> bool:
        """Whether it computes nothing: an operator that makes a tensor, or of which nothing ran on the device."""
        if self._found.has_device and segment.device is None and not is_cpp_kernel(segment.name):
            return True
        return id(segment) not in self._calls and short_name(segment.name) in _ALLOCATING

    def _add_kernel(self, segment: Segment) -> None:
        call, seconds = self._calls.get(id(segment)), segment.seconds
        self._device += seconds
        name = call.kernel if call else kernel_name(segment.name)
        row = self._kernels[name, call.stage if call else ""]
        row.seconds, row.calls = row.seconds + seconds, row.calls + 1
        if segment.device is not None:  # the host's part; the device's is counted below
            self._add_host(segment, Kind.LAUNCH)
        if call is None or not call.origins:
            return
        self._owned += seconds if segment.device is None else 0.0
        row.origins |= dict.fromkeys(call.origins)
        row.bound = _plus(row.bound, call.bound_seconds)
        for origin in dict.fromkeys(call.origins):
            line = self._lines[origin]
            line.seconds, line.calls = line.seconds + seconds, line.calls + 1
            line.shared += seconds if len(set(call.origins)) > 1 else 0.0
            line.bound = _plus(line.bound, call.bound_seconds)
            line.kernels[name] = None

    def _where(self, segment: Segment) -> str:
        around = segment.around
        if segment.kind is Kind.EAGER and (broken := self._breaks.get(around.compile)):
            return broken
        if self._joined and (compile := self._joined.compiles.get(around.compile)):
            return f"{compile.file}:{compile.line}"
        if around.compile and self._report is not None:
            return ""  # a compile that the run does not know: it was made while the program was measured
        if around.program < len(self._programs):
            program = self._programs[around.program]
            return f"{program.file}:{program.line}" if program.file else ""
        return around.place

    def profile(self, steps: int, programs: Sequence[MeasuredProgram], peaks: str) -> Profile:
        """All sums, for one step."""
        whole = sum(seconds for _, seconds in self._found.steps)
        inside = sum(end - start for start, end in self._found.busy)
        owned = self._owned + (inside if self._found.has_device else 0.0)
        kernels = [
            MeasuredKernel(name, stage, row.seconds / steps, row.calls / steps, tuple(row.origins), _over(row.bound, steps))
            for (name, stage), row in self._kernels.items()
        ]  # fmt: skip
        lines = [
            MeasuredLine(
                origin.file, origin.line, line.seconds / steps, line.shared / steps, _over(line.bound, steps),
                line.calls / steps, tuple(line.kernels),
            )
            for origin, line in self._lines.items()
        ]  # fmt: skip
        gaps = [Gap(kind, seconds / steps, where) for (kind, where), seconds in self._gaps.items() if seconds > 0]
        return Profile(
            run=self._report.run if self._report else "",
            steps=steps,
            device_seconds=self._device / steps,
            step_seconds=whole / steps,
            owned_seconds=min(owned, whole) / steps,
            lines=tuple(sorted(lines, key=lambda one: _above(one.seconds, one.bound_seconds), reverse=True)),
            kernels=tuple(sorted(kernels, key=lambda one: _above(one.seconds, one.bound_seconds), reverse=True)),
            gaps=tuple(sorted(gaps, key=lambda one: one.seconds, reverse=True)),
            cuda_graphs=CudaGraphs(self._found.graphs_recorded / steps, self._found.graphs_replayed / steps),
            programs=tuple(programs),
            peaks=peaks,
        )


def _overlap(busy: Sequence[tuple[float, float]], segment: Segment) -> float:
    """Seconds of a segment that are in one of the intervals, which are sorted."""
    number = bisect.bisect_right(busy, segment.start, key=lambda each: each[1])
    found = 0.0
    while number < len(busy) and busy[number][0] < segment.end:
        found += min(busy[number][1], segment.end) - max(busy[number][0], segment.start)
        number += 1
    return found


def _plus(sum: float | None, more: float | None) -> float | None:
    return sum if more is None else (sum or 0.0) + more


def _over(value: float | None, steps: int) -> float | None:
    return None if value is None else value / steps


def _above(seconds: float, bound: float | None) -> float:
    """Measured minus possible."""
    return seconds - (bound or 0.0)
