"""What a graph break and a recompilation take, as `irscope profile` tells it."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.profiling.noise import Spread
from irscope.vocabulary.units import count, duration


@dataclass(frozen=True)
class BreakRemoved:
    """The script beside the same script without the break or recompilation: both were called by turns, without a backward.

    Args:
        title, caveat: Title and caveat of the fix that removes it; the title is empty if there is none.
        before, after: Seconds of one call of each program, over the rounds; None if nothing was measured.
        saved: Seconds that a round saves: the first minus the second.
        is_clear: Whether the two differ by more than noise.
        why_not: Why nothing was measured; empty if it was.
    """

    title: str
    caveat: str = ""
    before: Spread | None = None
    after: Spread | None = None
    saved: Spread | None = None
    is_clear: bool | None = None
    why_not: str = ""

    @property
    def words(self) -> str:
        """``without it (Move the print after the call), forward alone: 120 µs → 98 µs, −22 µs (quartiles −21 µs to −24 µs)``."""
        if self.saved is None or self.before is None or self.after is None:
            return f"not measured without it: {self.why_not}"
        title = f"without it ({self.title}), forward alone"
        if not self.is_clear:
            return f"{title}: no difference above the noise"
        low, high = (_signed(seconds) for seconds in (self.saved.low, self.saved.high))
        calls = f"{duration(self.before.median)} → {duration(self.after.median)}"
        return f"{title}: {calls}, {_signed(self.saved.median)} (quartiles {low} to {high})"


def _signed(saved: float) -> str:
    return f"{'−' if saved > 0 else '+'}{duration(abs(saved))}"


@dataclass(frozen=True)
class BreakCost:
    """What a graph break takes in a step, by the gaps around it; what fusion across it would save is only in ``removed``.

    Args:
        seconds: The sum of the others.
        eager_seconds: Operators that run without compile at the break, on the host and on the device.
        guard_seconds: The search for the compiled code that goes on after it.
        entry_seconds: Python and PyTorch's runtime around the graphs that go on after it.
        spread: Spread of ``seconds`` over the steps; None with fewer than four.
        removed: What a step takes without it; None if that was not asked for.
    """

    file: str
    line: int
    code: str
    seconds: float
    eager_seconds: float
    guard_seconds: float
    entry_seconds: float
    spread: Spread | None = None
    removed: BreakRemoved | None = None

    @property
    def words(self) -> str:
        """``at least 38.4 µs of a step by the gaps around it (guards 7.29 µs, entering the next graph 31.1 µs; quartiles …)``."""
        parts = [
            ("eager operators", self.eager_seconds),
            ("guards", self.guard_seconds),
            ("entering the next graph", self.entry_seconds),
        ]
        told = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts if seconds)
        if self.spread is not None:
            told += f"; quartiles {duration(self.spread.low)} to {duration(self.spread.high)}"
        gaps = f"at least {duration(self.seconds)} of a step by the gaps around it ({told})"
        return gaps if self.removed is None else f"{gaps}; {self.removed.words}"


@dataclass(frozen=True)
class RecompileCost:
    """What it takes that a function was compiled several times.

    Args:
        compiles: How many it has.
        compile_seconds: Seconds of all of them but the first, once.
        guard_seconds: The search among them, in a step.
        removed: What a step takes without it; None if that was not asked for.
    """

    function: str
    file: str
    line: int
    compiles: int
    compile_seconds: float
    guard_seconds: float
    removed: BreakRemoved | None = None

    @property
    def words(self) -> str:
        """``compiled 3 times: recompiling took 4.0 s, its guards take 12 µs of a step``."""
        told = f"compiled {count(self.compiles, 'time')}: recompiling took {duration(self.compile_seconds)}"
        if self.guard_seconds:  # else no step looks for its code
            told += f", its guards take {duration(self.guard_seconds)} of a step"
        return told if self.removed is None else f"{told}; {self.removed.words}"
