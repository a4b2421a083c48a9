"""From a timeline, and the run that it is of, to a `Profile`: every moment of a step gets its owner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from irscope.ir.roofline import Work
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
    StepPiece,
)
from irscope.profiling.timeline import Kind, Segment, Timeline, is_cpp_kernel, kernel_name
from irscope.protocol import Origin, Report

UNKNOWN = "unknown"
_ALLOCATING = ("empty", "empty_strided", "empty_like", "as_strided", "detach", "alias", "view", "reshape", "resize_")
"""Operators that a graph's generated code calls around its kernels: they compute nothing."""
_INPUT_COPIES = ("_foreach_copy_", "copy_")
"""Of a CUDA graph's inputs to where it reads them.  They came from no line; the function that was compiled owns them."""


@dataclass
class _Bounds:
    """The least that calls take, and what they do, as far as it is known."""

    bound: float | None = None
    by: dict[str, float] = field(default_factory=dict)
    moved: float | None = None
    flops: float | None = None
    dtype: str = ""

    def add(self, work: Work | None) -> None:
        """One more call."""
        if work is None:
            return
        self.dtype = work.dtype
        self.moved, self.flops = _plus(self.moved, work.moved), _plus(self.flops, work.flops)
        if work.seconds is not None:
            self.bound = _plus(self.bound, work.seconds)
            self.by[work.bound] = self.by.get(work.bound, 0.0) + work.seconds

    def merge(self, other: _Bounds) -> None:
        """The calls of another part."""
        self.dtype = other.dtype or self.dtype
        self.bound, self.moved, self.flops = (
            _plus(mine, more)
            for mine, more in ((self.bound, other.bound), (self.moved, other.moved), (self.flops, other.flops))
        )
        for name, seconds in other.by.items():
            self.by[name] = self.by.get(name, 0.0) + seconds

    @property
    def mostly(self) -> str:
        """What bounds most of it: ``memory``, ``compute``, or an empty text."""
        return max(self.by, key=lambda name: self.by[name], default="")


@dataclass
class _Row(_Bounds):
    seconds: float = 0.0
    calls: int = 0
    origins: dict[Origin, None] = field(default_factory=dict)

    def merge(self, other: _Row) -> None:  # type: ignore[override]
        """The calls of another part."""
        super().merge(other)
        self.seconds, self.calls = self.seconds + other.seconds, self.calls + other.calls
        self.origins |= other.origins


@dataclass
class _Line(_Bounds):
    seconds: float = 0.0
    shared: float = 0.0
    calls: int = 0
    kernels: dict[str, None] = field(default_factory=dict)

    def merge(self, other: _Line) -> None:  # type: ignore[override]
        """The calls of another part."""
        super().merge(other)
        self.seconds, self.shared = self.seconds + other.seconds, self.shared + other.shared
        self.calls += other.calls
        self.kernels |= other.kernels


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
    sums = Sums(joined, report, programs)
    sums.add(found)
    return sums.profile(peaks)


@dataclass
class Totals:
    """What is summed up over a timeline; plain data, so that it goes from one process to another."""

    kernels: dict[tuple[str, str], _Row] = field(default_factory=lambda: defaultdict(_Row))
    lines: dict[Origin, _Line] = field(default_factory=lambda: defaultdict(_Line))
    gaps: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    owned: float = 0.0
    device: float = 0.0
    owned_device: float = 0.0
    busy: float = 0.0
    """Seconds of the device, of what ran there."""
    owned_busy: float = 0.0
    inside: float = 0.0
    """Seconds of the steps in which the device works: what runs there at once counts once."""
    idle: float | None = None
    compiled: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By program the compiles that its steps go through."""
    around: dict[tuple[str, Kind], float] = field(default_factory=lambda: defaultdict(float))
    """Seconds by compile and kind, of those kinds that breaks and recompilations bring."""
    by_step: dict[tuple[str, Kind], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """The same of each step, where the trace is read at once."""
    steps: list[tuple[int, float]] = field(default_factory=list)
    recorded: int = 0
    replayed: int = 0
    pieces: tuple[StepPiece, ...] = ()

    def add(self, other: Totals) -> None:
        """Those of another part of the same trace."""
        for row_key, row in other.kernels.items():
            self.kernels[row_key].merge(row)
        for origin, line in other.lines.items():
            self.lines[origin].merge(line)
        for gap, seconds in other.gaps.items():
            self.gaps[gap] += seconds
        for around, seconds in other.around.items():
            self.around[around] += seconds
        for program, compiles in other.compiled.items():
            self.compiled[program] |= compiles
        for name in ("owned", "device", "owned_device", "busy", "owned_busy", "inside", "recorded", "replayed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.idle = _plus(self.idle, other.idle)
        self.steps += other.steps
        self.pieces = self.pieces or other.pieces


class Sums:
    """Gives the time of timelines to its owners.

    Parameters
    ----------
    joined, report, programs
        As for `profile_of`.
    """

    def __init__(self, joined: Joined | None, report: Report | None, programs: Sequence[MeasuredProgram]) -> None:
        self._joined, self._report = joined, report
        self._programs = programs
        self._found = Timeline()
        self._calls: Mapping[int, Call] = {}
        self._host: dict[int, float] = {}
        self.totals = Totals()
        self._breaks = {
            compile.partition("#")[0]: f"{one.file}:{one.range.start.line}"
            for one in (report.findings if report else ())
            if one.kind == "graph-break"
            for compile in one.compiles
        }

    def add(self, found: Timeline, typical: float | None = None, has_picture: bool = True) -> None:
        """All of a timeline.

        Parameters
        ----------
        typical
            Seconds of the step that a picture shows; None: those of the median.
        """
        kernels = [one for one in found.segments if one.kind is Kind.KERNEL]
        self._found = found
        self._calls = self._joined.calls_of(kernels) if self._joined else {}
        self._host = host_seconds(found, self._programs)
        for segment in found.segments:
            self._add(segment)
        totals = self.totals
        totals.steps += found.steps
        totals.inside += sum(overlap(found.busy, step) for step in found.spans)
        totals.idle = _plus(totals.idle, device_idle(found))
        totals.recorded += found.graphs_recorded
        totals.replayed += found.graphs_replayed
        if has_picture:
            totals.pieces = one_step(found, self._calls, self._where, typical)

    def _add(self, segment: Segment) -> None:
        """The time of a segment goes to its owner."""
        if segment.around.compile:
            self.totals.compiled[segment.around.program].add(segment.around.compile)
        if segment.kind is Kind.KERNEL and not self._is_wrapper(segment):
            self._add_kernel(segment)
            return
        kind = Kind.WRAPPER if segment.kind is Kind.KERNEL else segment.kind
        self._add_host(segment, kind)
        if segment.device is not None:  # at a graph break
            where = self._where(segment)
            self._count(segment, segment.device)
            self.totals.gaps[kind.value, where or segment.name] += segment.device
            self._add_busy(segment.device, bool(where))

    def _add_host(self, segment: Segment, kind: Kind) -> None:
        """The time of the host in which the device does nothing."""
        seconds = self._host[id(segment)]
        where = self._where(segment)
        self._count(segment, seconds)
        own = 0.0 if self._programs else min(seconds, overlap(self._found.overhead, (segment.start, segment.end)))
        if own > 0:
            self.totals.gaps[Kind.PROFILER.value, ""] += own
            self.totals.owned += own
        is_new = self._report is not None and bool(segment.around.compile) and not where
        self.totals.gaps[UNKNOWN if is_new else kind.value, where or segment.name] += seconds - own
        self.totals.owned += seconds - own if where else 0.0

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

    def _add_kernel(self, segment: Segment) -> None:
        call = self._calls.get(id(segment))
        origins = self._origins(segment, call)
        seconds = self._host[id(segment)] if segment.device is None else segment.device
        is_copy = segment.device is not None and short_name(segment.name) in _INPUT_COPIES
        is_owned = bool(origins or (call is None and is_copy and self._where(segment)))
        self.totals.device += seconds
        self.totals.owned_device += seconds if is_owned else 0.0
        name = call.kernel if call else kernel_name(segment.name)
        row = self.totals.kernels[name, call.stage if call else ""]
        row.seconds, row.calls = row.seconds + seconds, row.calls + 1
        if segment.device is not None:  # the host's part; the device's is counted below
            self._add_host(segment, Kind.LAUNCH)
            self._add_busy(segment.device, is_owned)
        if call is None or not origins:
            return
        self.totals.owned += seconds if segment.device is None else 0.0
        row.origins |= dict.fromkeys(origins)
        row.add(call.work)
        for origin in dict.fromkeys(origins):
            line = self.totals.lines[origin]
            line.seconds, line.calls = line.seconds + seconds, line.calls + 1
            line.shared += seconds if len(set(origins)) > 1 else 0.0
            line.add(call.work)
            line.kernels[name] = None

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

        Parameters
        ----------
        peaks
            As in `Profile`.
        steps
            How many there are, if not as many as the timelines have.
        """
        totals, programs = self.totals, self._programs
        if steps is None:  # the steps of one program are averaged, and a step of the script is one of each
            steps = sum(number == 0 for number, _ in totals.steps) if programs else len(totals.steps)
        steps = max(1, steps)
        profiled = sum(seconds for _, seconds in totals.steps)
        plain = [one.plain_seconds for one in programs if not one.why_not]
        known = [one for one in plain if one is not None]
        whole = sum(known) * steps if known and len(known) == len(plain) else profiled
        owned = totals.owned + (totals.inside * totals.owned_busy / totals.busy if totals.busy else 0.0)
        kernels = [
            MeasuredKernel(
                name, stage, row.seconds / steps, row.calls / steps, tuple(row.origins), _over(row.bound, steps),
                row.mostly, _over(row.moved, steps), _over(row.flops, steps), row.dtype,
            )
            for (name, stage), row in totals.kernels.items()
        ]  # fmt: skip
        lines = [
            MeasuredLine(
                origin.file, origin.line, line.seconds / steps, line.shared / steps, _over(line.bound, steps),
                line.calls / steps, tuple(line.kernels), line.mostly,
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
            lines=tuple(sorted(lines, key=lambda one: _above(one.seconds, one.bound_seconds), reverse=True)),
            kernels=tuple(sorted(kernels, key=lambda one: _above(one.seconds, one.bound_seconds), reverse=True)),
            gaps=tuple(sorted(gaps, key=lambda one: one.seconds, reverse=True)),
            cuda_graphs=CudaGraphs(totals.recorded / steps, totals.replayed / steps, self._skipped()),
            programs=tuple(self._measured(at, one) for at, one in enumerate(programs)),
            peaks=peaks,
            idle_device_seconds=_over(totals.idle, steps),
            pieces=totals.pieces,
            breaks=breaks_of(self._report, around, totals.by_step) if self._report else (),
            recompiled=recompiled_of(self._report, around) if self._report else (),
        )

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


def _plus(sum: float | None, more: float | None) -> float | None:
    return sum if more is None else (sum or 0.0) + more


def _over(value: float | None, steps: int) -> float | None:
    return None if value is None else value / steps


def _above(seconds: float, bound: float | None) -> float:
    """Measured minus possible."""
    return seconds - (bound or 0.0)
