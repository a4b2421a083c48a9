"""What is summed up over a timeline, for kernels, lines and everything else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.ir.roofline import Work
from irscope.measures.splitting import shares_of
from irscope.measures.tree import Path
from irscope.profiling.joining import Call
from irscope.profiling.profile import StepPiece
from irscope.profiling.timeline import Kind
from irscope.protocol import Origin


@dataclass
class Bounds:
    """What calls take, the least that they could take, and what they do, as far as it is known."""

    seconds: float = 0.0
    bound: float | None = None
    by: dict[str, float] = field(default_factory=dict)
    moved: float | None = None
    flops: float | None = None
    dtype: str = ""

    def add(self, work: Work | None, calls: int) -> None:
        """This many more calls, each of which does this."""
        if work is None:
            return
        self.dtype = work.dtype
        self.moved, self.flops = (
            plus(self.moved, _times(work.moved, calls)),
            plus(self.flops, _times(work.flops, calls)),
        )
        if work.seconds is not None:
            self.bound = plus(self.bound, work.seconds * calls)
            self.by[work.bound] = self.by.get(work.bound, 0.0) + work.seconds * calls

    def merge(self, other: Bounds) -> None:
        """The calls of another part."""
        self.seconds += other.seconds
        self.dtype = other.dtype or self.dtype
        self.bound, self.moved, self.flops = (
            plus(mine, more)
            for mine, more in ((self.bound, other.bound), (self.moved, other.moved), (self.flops, other.flops))
        )
        for name, seconds in other.by.items():
            self.by[name] = self.by.get(name, 0.0) + seconds

    @property
    def is_refuted(self) -> bool:
        """Whether they took less than the bound: then it is none."""
        return self.bound is not None and self.bound > self.seconds

    @property
    def least(self) -> float | None:
        """The bound, or what they took if that is less."""
        return self.seconds if self.is_refuted else self.bound

    @property
    def mostly(self) -> str:
        """What bounds most of it: ``memory``, ``compute``, or an empty text."""
        return max(self.by, key=lambda name: self.by[name], default="")


@dataclass
class Row(Bounds):
    """A kernel."""

    calls: int = 0
    origins: dict[Origin, None] = field(default_factory=dict)

    def merge(self, other: Row) -> None:  # type: ignore[override]
        """The calls of another part."""
        super().merge(other)
        self.calls += other.calls
        self.origins |= other.origins


@dataclass
class Line(Bounds):
    """A line with all of its kernels."""

    shared: float = 0.0
    calls: int = 0
    kernels: dict[str, None] = field(default_factory=dict)

    def merge(self, other: Line) -> None:  # type: ignore[override]
        """The calls of another part."""
        super().merge(other)
        self.shared += other.shared
        self.calls += other.calls
        self.kernels |= other.kernels


@dataclass
class Totals:
    """What is summed up over a timeline; plain data, so that it goes from one process to another."""

    kernels: dict[tuple[str, str], Row] = field(default_factory=lambda: defaultdict(Row))
    lines: dict[Origin, Line] = field(default_factory=lambda: defaultdict(Line))
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
    modules: dict[Path, tuple[float, ...]] = field(default_factory=dict)
    """By chain of modules: the seconds of kernels, their bound and the bytes that they move."""
    frames: dict[Path, tuple[float, ...]] = field(default_factory=dict)
    """The same by chain of call frames."""

    def add(self, other: Totals) -> None:
        """Adds the totals of another part of the same trace."""
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
        for mine, more in ((self.modules, other.modules), (self.frames, other.frames)):
            for path, numbers in more.items():
                add_to_path(mine, path, numbers)
        self.idle = plus(self.idle, other.idle)
        self.steps += other.steps
        self.pieces = self.pieces or other.pieces

    def add_calls(self, call: Call, origins: Sequence[Origin], seconds: float, calls: int) -> None:
        """Kernels of one call in output code, and what they took together."""
        row = self.kernels[call.kernel, call.stage]
        row.seconds, row.calls = row.seconds + seconds, row.calls + calls
        row.origins |= dict.fromkeys(origins)
        row.add(call.work, calls)
        lines = dict.fromkeys(origins)
        for origin in lines:
            line = self.lines[origin]
            line.seconds, line.calls = line.seconds + seconds, line.calls + calls
            line.shared += seconds if len(lines) > 1 else 0.0
            line.add(call.work, calls)
            line.kernels[call.kernel] = None

    def add_paths(self, call: Call | None, seconds: float, calls: int) -> None:
        """The same on the modules and the call frames that lead to it; what has no call is on none."""
        parts = call.parts if call is not None else ()
        work = call.work if call is not None else None
        bound, moved = (work and work.seconds) or 0.0, (work and work.moved) or 0.0
        times, least = shares_of(parts, seconds / calls), shares_of(parts, bound)
        for part, of_time, of_work in zip(parts, times, least, strict=True):
            numbers = of_time * seconds, of_work * bound * calls, of_work * moved * calls
            add_to_path(self.modules, part.modules, numbers)
            add_to_path(self.frames, part.frames, numbers)
        if not parts:
            add_to_path(self.modules, (), (seconds, 0.0, 0.0))
            add_to_path(self.frames, (), (seconds, 0.0, 0.0))


def add_to_path(values: dict[Path, tuple[float, ...]], path: Path, numbers: Sequence[float]) -> None:
    """Adds one number per measure."""
    known = values.get(path)
    values[path] = tuple(numbers) if known is None else tuple(a + b for a, b in zip(known, numbers, strict=True))


def plus(sum: float | None, more: float | None) -> float | None:
    """The sum of what is known."""
    return sum if more is None else (sum or 0.0) + more


def _times(value: float | None, calls: int) -> float | None:
    return None if value is None else value * calls
