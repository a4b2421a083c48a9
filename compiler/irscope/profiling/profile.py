"""What `irscope profile` and `irscope open` tell."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.protocol import Origin


@dataclass(frozen=True)
class MeasuredKernel:
    """A kernel, or the calls of one library function in one graph; all numbers are of one step.

    Parameters
    ----------
    stage
        The output code that calls it; empty if the kernel could not be joined to the run.
    calls
        On average.
    origins
        The user's lines it came from.
    bound_seconds
        The least that it could take, by the device's bandwidth and arithmetic; None if that is not known.
    """

    name: str
    stage: str
    seconds: float
    calls: float
    origins: tuple[Origin, ...]
    bound_seconds: float | None


@dataclass(frozen=True)
class MeasuredLine:
    """A line with all kernels that came from it; the time of a kernel of several lines counts in each of them.

    Parameters
    ----------
    shared_seconds
        How many of the seconds are of kernels that came from other lines, too.
    bound_seconds
        Of those kernels whose bound is known; None if none is.
    kernels
        Their names.
    """

    file: str
    line: int
    seconds: float
    shared_seconds: float
    bound_seconds: float | None
    calls: float
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Gap:
    """Time of a step in which no kernel of a compiled graph ran.

    Parameters
    ----------
    kind
        Whose time it is (`irscope.profiling.timeline.Kind`), or ``unknown``.
    where
        The place in the user's code, as ``file:line``, or what is known instead; empty if nothing is.
    """

    kind: str
    seconds: float
    where: str


@dataclass(frozen=True)
class MeasuredProgram:
    """A compiled program of the script.

    Parameters
    ----------
    seconds
        Of a call while it was measured, on average.
    plain_seconds
        Of a call without the profiler, on average; None if it was not measured.
    backward
        Whether a call has a backward.
    why_not
        Why it was not measured; empty if it was.
    """

    function: str
    file: str
    line: int
    seconds: float | None
    plain_seconds: float | None
    backward: bool
    why_not: str = ""


@dataclass(frozen=True)
class CudaGraphs:
    """How often a step recorded and replayed a CUDA graph."""

    recorded: float
    replayed: float


@dataclass(frozen=True)
class Profile:
    """Measured time of one step: one call of each compiled program, or one step of a trace from elsewhere.

    Parameters
    ----------
    steps
        How many were measured; all other numbers are averages of one.
    device_seconds
        Of kernels and library calls.
    owned_seconds
        Of ``step_seconds``: what has a kernel with a line, or a gap with a kind and a place.
    peaks
        What the bounds were computed with; empty if they are not known.
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
