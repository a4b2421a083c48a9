"""Symbolic sizes: what stands for them in a text, and what a compile knows about them."""

from __future__ import annotations

import re

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class SymbolFacts:
    """A symbolic size of a compile; an infinite bound is None."""

    name: str
    hint: str | None
    """Its value in this compile; None if it is known only at run time."""
    source: str
    """Where it comes from: ``L['x'].size()[0]``; empty if it is known only at run time."""
    low: int | None
    high: int | None

    def text(self) -> str:
        """``8 in this compile, 2 to ∞``."""
        value = f"{self.hint} in this compile, " if self.hint is not None else ""
        return f"{value}{'-∞' if self.low is None else self.low} to {'∞' if self.high is None else self.high}"

    def line(self) -> str:
        """``s77 is L['x'].size()[0]: 8 in this compile, 2 to ∞``."""
        return f"{self.name} is {self.source or 'known only at run time'}: {self.text()}"


def symbols_in(text: str) -> tuple[str, ...]:
    """Names of symbolic sizes in a text, in order, each once: ``s77``, ``u0``, ``zf67``."""
    return tuple(dict.fromkeys(re.findall(r"\b(?:s|u|zf|zuf)\d+\b", text)))
