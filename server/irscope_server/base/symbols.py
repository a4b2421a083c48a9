"""The symbolic sizes of a compile, from the store."""

from __future__ import annotations

from irscope.ir.symbols import symbols_of
from irscope.pipelines.registry import role_of
from irscope.protocol import Compile
from irscope.protocol.symbols import SymbolFacts, symbols_in
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.results import Symbol


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
