"""What measured steps say: whether a candidate pays, by how much, and after how many steps its compile time is back."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irscope.profiling.noise import Spread, is_clear, spread_of
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Gain:
    """Seconds of a step, of the script as it is and with a candidate, by rounds in turns.

    Args:
        saved: The differences of the rounds; negative where it is slower.
        is_clear: Whether both differ by more than noise (`irscope.profiling.noise.is_clear`), and the quartiles of the
            differences are on one side of zero.
    """

    before: Spread
    after: Spread
    saved: Spread
    is_clear: bool

    @property
    def is_faster(self) -> bool:
        """Whether it is faster by more than noise."""
        return self.is_clear and self.saved.median > 0

    @property
    def parts(self) -> tuple[float, float, float]:
        """The saved part of a step: the median, and the quartiles."""
        whole = self.before.median
        return self.saved.median / whole, self.saved.low / whole, self.saved.high / whole


def gain_of(before: Sequence[float], after: Sequence[float]) -> Gain | None:
    """The gain of pairs of rounds; None if there are too few."""
    pairs = list(zip(before, after, strict=False))
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    spreads = spread_of(first), spread_of(second), spread_of([a - b for a, b in pairs])
    clear = is_clear(first, second)
    if None in spreads or clear is None or spreads[0] is None or spreads[1] is None or spreads[2] is None:
        return None
    one_side = spreads[2].low > 0 or spreads[2].high < 0
    return Gain(spreads[0], spreads[1], spreads[2], clear and one_side)


def payback(compile_before: float, compile_after: float, saved: float) -> int | None:
    """After how many steps more compile time is paid back; 0 if there is not more, None if it never is.

    Args:
        compile_before, compile_after: Seconds.
        saved: Seconds of each step.
    """
    more = compile_after - compile_before
    if more <= 0:
        return 0
    return math.ceil(more / saved) if saved > 0 else None
