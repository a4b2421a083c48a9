"""What `irscope profile` and `irscope open` tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

from irscope.measures.tree import NO_TREE, PathTree
from irscope.profiling.break_words import BreakCost, RecompileCost
from irscope.profiling.noise import Spread
from irscope.profiling.regions import MeasuredRegion
from irscope.profiling.step_memory import StepMemory
from irscope.protocol import Origin
from irscope.vocabulary.units import count, duration


@dataclass(frozen=True)
class MeasuredKernel:
    """A kernel, or the calls of one library function in one graph; all numbers are of one step.

    Args:
        stage: The output code that calls it; empty if the kernel could not be joined to the run.
        calls: On average.
        origins: The user's lines it came from.
        bound_seconds: The least that it could take, by the device's bandwidth and arithmetic; None if that is not
            known.
        bound_by: Which of the two it is: ``memory`` or ``compute``; empty if that is not known.
        is_bound_refuted: Whether it was faster than that; ``bound_seconds`` are then those that it took.
        moved_bytes, flops: Bytes read and written, and floating-point operations; None if they are not known.
        dtype: Dtype of most of what it writes; empty if that is not known.
    """

    name: str
    stage: str
    seconds: float
    calls: float
    origins: tuple[Origin, ...]
    bound_seconds: float | None
    bound_by: str = ""
    moved_bytes: float | None = None
    flops: float | None = None
    dtype: str = ""
    is_bound_refuted: bool = False


@dataclass(frozen=True)
class MeasuredLine:
    """A line with all kernels that came from it; the time of a kernel of several lines counts in each of them.

    Args:
        shared_seconds: How many of the seconds are of kernels that came from other lines, too.
        bound_seconds: Seconds of the kernels whose bound is known; None if there are none.
        kernels: Their names.
        bound_by: ``memory`` or ``compute``, by the larger part of ``bound_seconds``; empty if that is not known.
        is_bound_refuted: As of a `MeasuredKernel`.
    """

    file: str
    line: int
    seconds: float
    shared_seconds: float
    bound_seconds: float | None
    calls: float
    kernels: tuple[str, ...]
    bound_by: str = ""
    is_bound_refuted: bool = False


def bound_mark(measured: MeasuredKernel | MeasuredLine) -> str:
    """What is written before a bound: ``≤`` if it is refuted."""
    return "≤ " if measured.is_bound_refuted else ""


def bound_text(measured: MeasuredKernel | MeasuredLine) -> str:
    """``12 µs``, or ``≤ 12 µs``; empty if it is not known."""
    return "" if measured.bound_seconds is None else f"{bound_mark(measured)}{duration(measured.bound_seconds)}"


@dataclass(frozen=True)
class Gap:
    """Time of a step in which no kernel of a compiled graph ran.

    Args:
        kind: Owner of the time (`irscope.profiling.timeline.Kind`), or ``unknown``.
        where: The place in the user's code, as ``file:line``, or what is known instead; empty if nothing is.
    """

    kind: str
    seconds: float
    where: str


@dataclass(frozen=True)
class StepPiece:
    """A piece of the step that a picture shows.

    Args:
        row: ``host`` or ``device``.
        start: Seconds from the begin of the step.
        kind: Like that of a `Gap`, or ``kernel``.
        compile: The compile to which it belongs, as PyTorch names it; empty around the compiled functions.
        backward: Whether it is in the backward of that compile.
        where: The place in the user's code, as ``file:line``, or what is known instead.
    """

    row: str
    start: float
    seconds: float
    kind: str
    name: str
    compile: str = ""
    backward: bool = False
    where: str = ""


@dataclass(frozen=True)
class MeasuredProgram:
    """A compiled program of the script.

    Args:
        seconds: Seconds of a call while the profiler ran, on average.
        plain_seconds: Seconds of a call without the profiler, the lower quartile; None if it was not measured.
        backward: Whether a call has a backward.
        why_not: Why it was not measured; empty if it was.
        samples: Seconds of single calls without the profiler, in their order.
        eager_seconds: Seconds of a call of the program itself, without compile, likewise, of calls between the others;
            None if it cannot run.
        compile_seconds: What compiling took of all that its calls go through.
        spread, eager_spread: Quartiles of single calls: compiled, and without compile; None with fewer than four.
        is_clear: Whether the two differ by more than noise; None if there are too few repetitions.
        is_foreign: Whether its code is PyTorch's own, as that of an ``nn.Sequential``: ``file`` and ``line`` are then
            those of the user's line that calls it, which owns the kernels that came from no line.
        put_back: What a call changes and irscope puts back before the next one: ``self.calls``.
        compiled_again: The guard that failed where no code that the script had compiled was valid for the measured
            call, so that it was compiled once more after the script; empty if some was.
    """

    function: str
    file: str
    line: int
    seconds: float | None
    plain_seconds: float | None
    backward: bool
    why_not: str = ""
    samples: tuple[float, ...] = ()
    eager_seconds: float | None = None
    compile_seconds: float | None = None
    is_foreign: bool = False
    spread: Spread | None = None
    eager_spread: Spread | None = None
    is_clear: bool | None = None
    put_back: tuple[str, ...] = ()
    compiled_again: str = ""

    @property
    def paid_back_calls(self) -> int | None:
        """After how many calls compiling has saved what it took; None if no call is clearly faster, or that is not known."""
        if (
            self.is_clear is False
            or self.plain_seconds is None
            or self.eager_seconds is None
            or self.compile_seconds is None
        ):
            return None
        saved = self.eager_seconds - self.plain_seconds
        return math.ceil(self.compile_seconds / saved) if saved > 0 else None


@dataclass(frozen=True)
class SkippedGraph:
    """Why a compiled function runs without a CUDA graph, and the place that PyTorch names."""

    why: str
    file: str
    line: int


@dataclass(frozen=True)
class RecordedAgain:
    """A CUDA graph that was recorded again, how often, and why, as PyTorch says it."""

    compile: str
    function: str
    why: str
    count: int


@dataclass(frozen=True)
class GraphPool:
    """A memory pool of CUDA graphs: the bytes that it holds, and of these what is in use."""

    pool: str
    bytes: int
    used_bytes: int


@dataclass(frozen=True)
class CudaGraphs:
    """What became of CUDA graphs.

    Args:
        recorded, replayed: How often in a step; what is warm records none.
        skipped: Compiled functions that have none though they should.
        recordings: How many were recorded before the steps were measured.
        again: The ones of them that were recorded again.
    """

    recorded: float
    replayed: float
    skipped: tuple[SkippedGraph, ...] = ()
    recordings: int = 0
    again: tuple[RecordedAgain, ...] = ()
    pools: tuple[GraphPool, ...] = ()


@dataclass(frozen=True)
class Profile:
    """Measured time of one step: one call of each compiled program, or one step of a trace from elsewhere.

    Args:
        steps: How many were measured; all other numbers are averages of one.
        device_seconds: Seconds of kernels and library calls.
        step_seconds: Without the profiler, where the programs could be timed without it; what is below adds up to it.
        owned_seconds: The part of ``step_seconds`` that has a kernel with a line, or a gap with a kind and a place.
        owned_device_seconds: The part of ``device_seconds`` in kernels with a line, and copies of a CUDA graph's
            inputs.
        profiled_seconds: A step while the profiler ran.
        idle_device_seconds: The part of that in which the device did nothing; None without a device.
        pieces: One step of median length, host first; with several programs one of each, after each other.
        peaks: What the bounds were computed with; empty if they are not known.
        cpu_peaks: Bytes and operations (float32) per second that the CPU reached, where it was measured; else None.
        warnings: What of a trace from elsewhere could not be read.
        regions: The graphs that the programs go through, each called alone.
        breaks, recompiled: What graph breaks and recompilations of the run take, the dearest first.
        by_module, by_frame: ``device_seconds``, their bound and the bytes moved, by the modules and by the call frames
            that lead to the kernels.  A kernel of several lines is divided among them by a model
            (`irscope.measures.splitting`).
        memory: The memory of a step, where it was measured.
    """

    run: str
    steps: int
    device_seconds: float
    step_seconds: float
    owned_seconds: float
    lines: tuple[MeasuredLine, ...]
    kernels: tuple[MeasuredKernel, ...]
    gaps: tuple[Gap, ...]
    cuda_graphs: CudaGraphs
    programs: tuple[MeasuredProgram, ...] = ()
    peaks: str = ""
    owned_device_seconds: float = 0.0
    profiled_seconds: float = 0.0
    idle_device_seconds: float | None = None
    pieces: tuple[StepPiece, ...] = ()
    warnings: tuple[str, ...] = ()
    breaks: tuple[BreakCost, ...] = ()
    recompiled: tuple[RecompileCost, ...] = ()
    regions: tuple[MeasuredRegion, ...] = ()
    by_module: PathTree = NO_TREE
    by_frame: PathTree = NO_TREE
    cpu_peaks: tuple[float, float] | None = None
    memory: StepMemory | None = None

    @property
    def bound_words(self) -> str:
        """What the bounds are; empty if there are none."""
        if not self.peaks:
            return ""
        refuted = sum(one.is_bound_refuted for one in self.kernels)
        if not refuted:
            return f"the least time on {self.peaks}"
        took = "it took" if refuted == 1 else "they took"
        return (
            f"the least time on {self.peaks}; ≤: {count(refuted, 'kernel')} took less than that, so the peak was measured "
            f"too low or not all bytes that are counted were moved, and the bound is what {took}"
        )

    @property
    def why_no_lines(self) -> str:
        """Why no line has time of kernels; empty if one has."""
        if self.lines:
            return ""
        if not self.kernels:
            return "No kernel ran in the step: all of it ran as Python and eager operators."
        if again := next((one.compiled_again for one in self.programs if one.compiled_again), ""):
            return f"The script had compiled no code for the measured call ({again}), and what was compiled for it has no lines."
        return "The run has no compile that these kernels are from."

    @property
    def has_own_regions(self) -> bool:
        """Whether ``regions`` say more than ``programs``: a program of one graph is compared with eager as a whole already."""
        return len(self.regions) > 1 or any(one.elsewhere for one in self.regions)
