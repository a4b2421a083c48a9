"""What is said of one recompilation, and phrases that several rules use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from irscope.protocol import Fix, Severity, carrying_out
from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.findings.recompiling.facts import Facts

DYNAMIC = "`torch.compile(..., dynamic=True)`"
EACH_VALUE = "Each new value is one more compile, up to the recompile limit."
_RATE = re.compile(r"param_groups\[\d+\]\['lr'\]$")
"""Where an optimizer keeps its learning rate."""
_MOMENTUM = re.compile(r"param_groups\[\d+\]\['(betas|momentum)'\]")
_NO_CYCLE = "Pass `cycle_momentum=False` to the scheduler (`OneCycleLR`, `CyclicLR`): else it writes a new number into the optimizer in each step."
_RATE_AS_TENSOR = "Give the optimizer its learning rate as a tensor: `lr=torch.tensor(...)`. A schedule then writes into it, and one compile serves every rate."


@dataclass(frozen=True)
class Words:
    """What is said of one recompilation besides what changed.

    Args:
        more: Whether more will come: a sentence; empty if this is not known.
        hints: What to do, the best first.
        severity: None for that of the kind.
        fixes: What carries out hints.
    """

    more: str
    hints: tuple[str, ...]
    severity: Severity | None = None
    fixes: tuple[Fix, ...] = ()

    @classmethod
    def told(cls, more: str, hints: Sequence[tuple[str, Fix | None]], severity: Severity | None = None) -> Words:
        """Words of which each hint has the fix that carries it out, or None."""
        texts = tuple(text for text, _ in hints)
        return cls(more, texts, severity, carrying_out(fix for _, fix in hints))


def rate_as_tensor(source: str) -> tuple[str, ...]:
    """The hints where a value is the learning rate or the momentum of an optimizer, which a schedule changes; else none."""
    if _MOMENTUM.search(source):
        return (_NO_CYCLE, _RATE_AS_TENSOR)
    return (_RATE_AS_TENSOR,) if _RATE.search(source) else ()


def one_for_each_of_two(facts: Facts, which: str) -> str:
    """How many compiles a thing with two states makes: two, if it has not been the cause before."""
    if facts.is_again:
        return f"Two compiles, {which}, for each combination of what else changes."
    return f"At most two compiles, {which}."
