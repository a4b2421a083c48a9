"""From a timeline and its run to a `Profile`: every moment of a step gets its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from irscope.measures.tree import Measure, Path, PathTree, tree_of
from irscope.profiling.break_costs import COUNTED, breaks_of, recompiled_of
from irscope.profiling.joining import Call, Joined, short_name
from irscope.profiling.one_step import device_idle, one_step
from irscope.profiling.plain_time import host_seconds, overlap
from irscope.profiling.profile import (
    CudaGraphs,
    Gap,
    MeasuredKernel,
    MeasuredLine,
    MeasuredProgram,
    Profile,
    SkippedGraph,
)
from irscope.profiling.span_roles import is_cpp_kernel, kernel_name
from irscope.profiling.timeline import Kind, Segment, Timeline
from irscope.profiling.totals import Totals, plus
from irscope.protocol import Origin, Report

UNKNOWN = "unknown"
_ALLOCATING = ("empty", "empty_strided", "empty_like", "as_strided", "detach", "alias", "view", "reshape", "resize_")
"""Operators that a graph's generated code calls around its kernels: they compute nothing."""
_INPUT_COPIES = ("_foreach_copy_", "copy_")
"""Copies of a CUDA graph's inputs to where it reads them.  They came from no line; the function that was compiled owns
them."""


def profile_of(
    found: Timeline,
    joined: Joined | None = None,
    report: Report | None = None,
    programs: Sequence[MeasuredProgram] = (),
    peaks: str = "",
) -> Profile:
    """The profile of a timeline.

    Args:
        joined, report: Its run; None: it is from elsewhere, and nothing is known but the names in the trace.
        programs: The ones that the steps call, by their numbers.
    """
    sums = Sums(joined, report, programs)
    sums.add(found)
    return sums.profile(peaks)


@dataclass(slots=True)
class _Called:
    """A call in output code, with all kernels of it in a timeline."""

    call: Call
    origins: tuple[Origin, ...]
    seconds: float = 0.0
    calls: int = 0


class Sums:
    """Gives the time of timelines to its owners.

    Args:
        joined, report, programs: As for `profile_of`.
    """

    def __init__(self, joined: Joined | None, report: Report | None, programs: Sequence[MeasuredProgram]) -> None:
        self._joined, self._report = joined, report
        self._programs = programs
        self._found = Timeline()
        self._calls: Mapping[int, Call] = {}
        self._called: dict[tuple[int, int], _Called] = {}
        self._places: dict[tuple[str, int, str, bool], str] = {}
        self.totals = Totals()
        self._breaks = {
            compile.partition("#")[0]: f"{one.file}:{one.range.start.line}"
            for one in (report.findings if report else ())
            if one.kind == "graph-break"
            for compile in one.compiles
        }

    def add(self, found: Timeline, typical: float | None = None, has_picture: bool = True) -> None:
        """All of a timeline.

        Args:
            typical: Seconds of the step that a picture shows; None: those of the median.
        """
        kernels = [one for one in found.segments if one.kind is Kind.KERNEL]
        self._found = found
        self._calls = self._joined.calls_of(kernels) if self._joined else {}
        for segment, host in zip(found.segments, host_seconds(found, self._programs), strict=True):
            self._add(segment, host)
        totals = self.totals
        for one in self._called.values():
            totals.add_calls(one.call, one.origins, one.seconds, one.calls)
            totals.add_paths(one.call, one.seconds, one.calls)
        self._called.clear()  # it is by ids, which another timeline may have again
        totals.steps += found.steps
        totals.inside += sum(overlap(found.busy, step) for step in found.spans)
        totals.idle = plus(totals.idle, device_idle(found))
        totals.recorded += found.graphs_recorded
        totals.replayed += found.graphs_replayed
        if has_picture:
            totals.pieces = one_step(found, self._calls, self._where, typical)

    def _add(self, segment: Segment, host: float) -> None:
        """The time of a segment goes to its owner; ``host``: seconds of the host in which the device does nothing."""
        if segment.around.compile:
            self.totals.compiled[segment.around.program].add(segment.around.compile)
        kind = segment.kind
        if kind is Kind.KERNEL:
            if not self._is_wrapper(segment):
                self._add_kernel(segment, host)
                return
            kind = Kind.WRAPPER
        self._add_host(segment, kind, host)
        if segment.device is not None:  # at a graph break
            where = self._where(segment)
            self._count(segment, segment.device)
            self.totals.gaps[kind.value, where or segment.name] += segment.device
            self._add_busy(segment.device, bool(where))

    def _add_host(self, segment: Segment, kind: Kind, seconds: float) -> None:
        where, totals = self._where(segment), self.totals
        self._count(segment, seconds)
        if seconds > 0 and self._found.overhead and not self._programs:
            own = min(seconds, overlap(self._found.overhead, (segment.start, segment.end)))
            if own > 0:
                totals.gaps[Kind.PROFILER.value, ""] += own
                totals.owned += own
                seconds -= own
        if where:
            totals.owned += seconds
        is_new = not where and self._report is not None and bool(segment.around.compile)
        totals.gaps[UNKNOWN if is_new else kind.value, where or segment.name] += seconds

    def _count(self, segment: Segment, seconds: float) -> None:
        if segment.around.compile and segment.kind in COUNTED:
            self.totals.around[segment.around.compile, segment.kind] += seconds
            if self._programs:
                steps = self.totals.by_step[segment.around.compile, segment.kind]
                steps[segment.around.step] = steps.get(segment.around.step, 0.0) + seconds

    def _is_wrapper(self, segment: Segment) -> bool:
        """Whether it computes nothing: an operator that makes a tensor, or of which nothing ran on the device."""
        if self._found.has_device and segment.device is None and not is_cpp_kernel(segment.name):
            return True
        return id(segment) not in self._calls and short_name(segment.name) in _ALLOCATING

    def _add_kernel(self, segment: Segment, host: float) -> None:
        call = self._calls.get(id(segment))
        origins = self._origins(segment, call)
        seconds = host if segment.device is None else segment.device
        is_copy = segment.device is not None and short_name(segment.name) in _INPUT_COPIES
        is_owned = bool(origins or (call is None and is_copy and self._where(segment)))
        self.totals.device += seconds
        self.totals.owned_device += seconds if is_owned else 0.0
        if segment.device is not None:  # the host's part; the device's is counted below
            self._add_host(segment, Kind.LAUNCH, host)
            self._add_busy(segment.device, is_owned)
        if call is None:
            row = self.totals.kernels[kernel_name(segment.name), ""]
            row.seconds, row.calls = row.seconds + seconds, row.calls + 1
            self.totals.add_paths(None, seconds, 1)
            return
        self.totals.owned += seconds if origins and segment.device is None else 0.0
        key = id(call), segment.around.program
        if (called := self._called.get(key)) is None:
            called = self._called[key] = _Called(call, origins)
        called.seconds, called.calls = called.seconds + seconds, called.calls + 1

    def _origins(self, segment: Segment, call: Call | None) -> tuple[Origin, ...]:
        """The lines of a call; where all of its program is PyTorch's own code, the user's line that calls the program."""
        if call is None or call.origins:
            return () if call is None else call.origins
        program = self._program(segment)
        return (Origin(program.file, program.line),) if program is not None and program.is_foreign else ()

    def _program(self, segment: Segment) -> MeasuredProgram | None:
        number = segment.around.program
        return self._programs[number] if number < len(self._programs) else None

    def _add_busy(self, seconds: float, is_owned: bool) -> None:
        self.totals.busy += seconds
        self.totals.owned_busy += seconds if is_owned else 0.0

    def _where(self, segment: Segment) -> str:
        around, is_eager = segment.around, segment.kind is Kind.EAGER
        key = around.compile, around.program, around.place, is_eager
        if (found := self._places.get(key)) is None:
            found = self._places[key] = self._place(segment)
        return found

    def _place(self, segment: Segment) -> str:
        around = segment.around
        if segment.kind is Kind.EAGER and (broken := self._breaks.get(around.compile)):
            return broken
        program = self._program(segment)
        compile = self._joined.compiles.get(around.compile) if self._joined else None
        if compile is not None and program is not None and program.is_foreign:
            return f"{program.file}:{program.line}"
        if compile is not None:
            return f"{compile.file}:{compile.line}"
        if around.compile and self._report is not None:
            return ""  # a compile that the run does not know: it was made while the program was measured
        if program is not None:
            return f"{program.file}:{program.line}" if program.file else ""
        return around.place

    def profile(self, peaks: str, steps: int | None = None) -> Profile:
        """All sums, for one step.

        Args:
            peaks: As in `Profile`.
            steps: How many there are, if not as many as the timelines have.
        """
        totals, programs = self.totals, self._programs
        if steps is None:  # the steps of one program are averaged, and a step of the script is one of each
            steps = sum(number == 0 for number, _ in totals.steps) if programs else len(totals.steps)
        steps = max(1, steps)
        profiled = sum(seconds for _, seconds in totals.steps)
        plain = self._plain_seconds()
        whole = profiled if plain is None else plain * steps
        owned = totals.owned + (totals.inside * totals.owned_busy / totals.busy if totals.busy else 0.0)
        kernels = [
            MeasuredKernel(
                name, stage, row.seconds / steps, row.calls / steps, tuple(row.origins), _over(row.least, steps),
                row.mostly, _over(row.moved, steps), _over(row.flops, steps), row.dtype, row.is_refuted,
            )
            for (name, stage), row in totals.kernels.items()
        ]  # fmt: skip
        lines = [
            MeasuredLine(
                origin.file, origin.line, line.seconds / steps, line.shared / steps, _over(line.least, steps),
                line.calls / steps, tuple(line.kernels), line.mostly, line.is_refuted,
            )
            for origin, line in totals.lines.items()
        ]  # fmt: skip
        around = {key: seconds / steps for key, seconds in totals.around.items()}
        gaps = [Gap(kind, seconds / steps, where) for (kind, where), seconds in totals.gaps.items() if seconds > 0]
        return Profile(
            run=self._report.run if self._report else "",
            steps=steps,
            device_seconds=totals.device / steps,
            step_seconds=whole / steps,
            owned_seconds=min(owned, whole) / steps,
            owned_device_seconds=totals.owned_device / steps,
            profiled_seconds=profiled / steps,
            lines=tuple(sorted(lines, key=_avoidable, reverse=True)),
            kernels=tuple(sorted(kernels, key=_avoidable, reverse=True)),
            gaps=tuple(sorted(gaps, key=lambda one: one.seconds, reverse=True)),
            cuda_graphs=CudaGraphs(totals.recorded / steps, totals.replayed / steps, self._skipped()),
            programs=tuple(self._measured(at, one) for at, one in enumerate(programs)),
            peaks=peaks,
            idle_device_seconds=_over(totals.idle, steps),
            pieces=totals.pieces,
            breaks=breaks_of(self._report, around, totals.by_step) if self._report else (),
            recompiled=recompiled_of(self._report, around) if self._report else (),
            by_module=_tree(totals.modules, steps),
            by_frame=_tree(totals.frames, steps),
        )

    def _plain_seconds(self) -> float | None:
        """What a step takes without the profiler; None if that was not measured for all programs."""
        seconds = [program.plain_seconds for program in self._programs if not program.why_not]
        measured = [duration for duration in seconds if duration is not None]
        return sum(measured) if measured and len(measured) == len(seconds) else None

    def _measured(self, program: int, facts: MeasuredProgram) -> MeasuredProgram:
        seconds = [seconds for number, seconds in self.totals.steps if number == program]
        return replace(
            facts,
            seconds=sum(seconds) / len(seconds) if seconds else None,
            compile_seconds=self._compile_seconds(program),
        )

    def _compile_seconds(self, program: int) -> float | None:
        """With all recompilations: a call goes through the newest one."""
        frames = {compile.partition("/")[0] for compile in self.totals.compiled.get(program, ())}
        compiles = self._report.compiles if self._report else ()
        seconds = [one.seconds for one in compiles if one.id.partition("/")[0] in frames]
        return sum(seconds) if seconds else None

    def _skipped(self) -> tuple[SkippedGraph, ...]:
        findings = self._report.findings if self._report else ()
        return tuple(
            SkippedGraph(one.message, one.file, one.range.start.line)
            for one in findings
            if one.kind == "cudagraph-skip"
        )


_MEASURES = (Measure("time", "seconds"), Measure("bound", "seconds"), Measure("moved", "bytes"))
"""What is in the trees of a profile."""


def _tree(values: Mapping[Path, Sequence[float]], steps: int) -> PathTree:
    return tree_of(
        "step",
        _MEASURES,
        {
            path: (seconds / steps, min(bound, seconds) / steps, moved / steps)
            for path, (seconds, bound, moved) in values.items()
        },
    )


def _over(value: float | None, steps: int) -> float | None:
    return None if value is None else value / steps


def _avoidable(measured: MeasuredLine | MeasuredKernel) -> float:
    """Measured minus possible."""
    return measured.seconds - (measured.bound_seconds or 0.0)
