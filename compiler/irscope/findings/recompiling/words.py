"""What is said of one recompilation, and phrases that several rules use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irscope.protocol import Fix, Marks, Severity
from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.findings.recompiling.facts import Facts

DYNAMIC = "`torch.compile(..., dynamic=True)`"
EACH_VALUE = "Each new value is one more compile, up to the recompile limit."


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


def one_for_each_of_two(facts: Facts, which: str) -> str:
    """How many compiles a thing with two states makes: two, if it has not been the cause before."""
    if facts.is_again:
        return f"Two compiles, {which}, for each combination of what else changes."
    return f"At most two compiles, {which}."
