"""Symbolic sizes: what stands for them in a type, and what a compile knows about them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.protocol import Compile
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.results import Symbol


@dataclass(frozen=True)
class SymbolFacts:
    """A symbolic size of a compile; an infinite bound is None."""

    name: str
    hint: str | None
    source: str
    low: int | None
    high: int | None

    def text(self) -> str:
        """``8 in this compile, 2 to ∞``."""
        value = f"{self.hint} in this compile, " if self.hint is not None else ""
        return f"{value}{'-∞' if self.low is None else self.low} to {'∞' if self.high is None else self.high}"


def symbols_of_compile(store: Store, run: str, compile: Compile) -> dict[str, SymbolFacts]:
    """The symbolic sizes of a compile, by name; empty if it has none, or the store's data about them is damaged."""
    told = [stage for stage in compile.stages if role_of(stage.name) is Role.SYMBOLS]
    try:
        return symbols_of(store.stage_data(run, told[-1].id)) if told else {}
    except (LookupError, TypeError, ValueError):
        return {}


def symbols_shown(known: dict[str, SymbolFacts], text: str) -> tuple[Symbol, ...]:
    """What the symbolic sizes in a text stand for, for a panel."""
    return tuple(Symbol(one.name, one.source, one.text()) for name in symbols_in(text) if (one := known.get(name)))


def symbols_of(data: Any) -> dict[str, SymbolFacts]:
    """The symbolic sizes in the data of a compile's stage of symbols, by name."""
    symbols = {}
    for entry in data.get("symbols", ()) if isinstance(data, dict) else ():
        low, high = entry["narrowed"]
        symbols[entry["symbol"]] = SymbolFacts(entry["symbol"], entry["hint"], entry["source"], low, high)
    return symbols


def symbols_in(text: str) -> tuple[str, ...]:
    """Names of symbolic sizes in a type, in order, each once: ``s77``, ``u0``, ``zf67``."""
    return tuple(dict.fromkeys(re.findall(r"\b(?:s|u|zf|zuf)\d+\b", text)))
