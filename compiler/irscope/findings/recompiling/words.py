"""What is said of one recompilation, and phrases that several rules use."""

from __future__ import annotations

from irscope.protocol import Fix, Marks, Severity
from irscope.vocabulary.records import dataclass

DYNAMIC = "`torch.compile(..., dynamic=True)`"
EACH_VALUE = "Each new value is one more compile, up to the recompile limit."
MOST_TWO = "At most two compiles"


@dataclass(frozen=True)
class Words:
    """What is said of one recompilation besides what changed.

    Parameters
    ----------
    more
        Whether more will come: a sentence; empty if this is not known.
    hints
        What to do, the best first.
    severity
        None for that of the kind.
    fixes
        Hints that can be applied.
    marks
        What a hint says to put before the first call; None if none does.
    """

    more: str
    hints: tuple[str, ...]
    severity: Severity | None = None
    fixes: tuple[Fix, ...] = ()
    marks: Marks | None = None
