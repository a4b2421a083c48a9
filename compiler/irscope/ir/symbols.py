"""The symbolic sizes of a compile: where each came from, what it may be, and what narrowed it.

From records of the trace alone: ``create_symbol``, ``create_unbacked_symbol``, ``guard_added_fast`` and
``symbolic_shape_specialization``.  The data of a stage ``symbols``:

``version``  1
``symbols``  one object each: ``symbol`` (``s77``; ``u0`` is unbacked: no value is known while compiling), ``hint`` (the
             value at this compile, null for an unbacked one), ``source`` (``L['x'].size()[0]``), ``range`` as it was
             made and ``narrowed`` as far as the guards below tell (bounds are numbers, null is infinite),
             ``place`` (where the user's code first used it) and ``specialized`` (null, or the ``value`` it was fixed
             to and PyTorch's ``reason``).
``guards``   what was found out about them and is checked from then on: ``expression``, ``symbols`` in it, ``place``.

A place is ``{"file", "line", "function"}`` or null.  A range is narrowed here only by comparisons of one symbol with a
number; PyTorch may know more.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from irscope.protocol.symbols import SymbolFacts
from irscope.vocabulary.records import dataclass

VERSION = 1
EVENTS = ("create_symbol", "create_unbacked_symbol", "guard_added_fast", "symbolic_shape_specialization")

Bounds = tuple["int | None", "int | None"]


@dataclass(frozen=True)
class SymbolPlace:
    """The line of the user's code that introduced a symbol or a guard; `line` is 1-based."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Specialized:
    """The number that a symbol was fixed to, and why."""

    value: str
    reason: str


@dataclass(frozen=True)
class Symbol:
    """A symbolic size; an infinite bound is None."""

    symbol: str
    hint: str | None
    source: str
    range: Bounds
    narrowed: Bounds
    place: SymbolPlace | None
    specialized: Specialized | None = None


@dataclass(frozen=True)
class ShapeGuard:
    """A condition on symbols that compiled code checks; `place` is None if PyTorch gives none."""

    expression: str
    symbols: tuple[str, ...]
    place: SymbolPlace | None


class Symbols:
    """What the records of one compile have told so far."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self.guards: list[ShapeGuard] = []

    def note(self, event: str, facts: dict[str, Any], place: SymbolPlace | None) -> None:
        """Takes in a record of one of `EVENTS`."""
        if event == "guard_added_fast":
            self._guard(str(facts.get("expr", "")), place)
            return
        name = str(facts.get("symbol", ""))
        if event == "symbolic_shape_specialization":
            if name in self.symbols:
                value = Specialized(str(facts.get("value", "")), str(facts.get("reason", "")))
                self.symbols[name] = replace(self.symbols[name], specialized=value)
            return
        hint = str(facts["val"]) if event == "create_symbol" and "val" in facts else None
        bounds = _bounds(str(facts.get("vr", "")))
        self.symbols[name] = Symbol(name, hint, str(facts.get("source", "")), bounds, bounds, place)

    def _guard(self, expression: str, place: SymbolPlace | None) -> None:
        inside = tuple(name for name in self.symbols if re.search(rf"\b{re.escape(name)}\b", expression))
        guard = ShapeGuard(expression, inside, place)
        if guard not in self.guards:
            self.guards.append(guard)
        for name in inside:
            symbol = self.symbols[name]
            self.symbols[name] = replace(symbol, narrowed=_narrowed(symbol.narrowed, name, expression))

    def data(self) -> dict[str, Any]:
        """All symbols and guards as JSON values, in the layout of the stage's data."""
        return {
            "version": VERSION,
            "symbols": [
                {
                    "symbol": s.symbol,
                    "hint": s.hint,
                    "source": s.source,
                    "range": list(s.range),
                    "narrowed": list(s.narrowed),
                    "place": _place_data(s.place),
                    "specialized": None if s.specialized is None else vars(s.specialized),
                }
                for s in self.symbols.values()
            ],
            "guards": [
                {"expression": g.expression, "symbols": list(g.symbols), "place": _place_data(g.place)}
                for g in self.guards
            ],
        }

    def text(self) -> str:
        """A line a symbol, below it what is known about it."""
        lines = []
        for symbol in self.symbols.values():
            hint = f" = {symbol.hint}" if symbol.hint is not None else ""
            of = f"  {symbol.source}" if symbol.source else "  unbacked: its value is not known while compiling"
            lines.append(f"{symbol.symbol}{hint}{of}  in {_range_text(symbol.range)}{_place_text(symbol.place)}")
            if symbol.specialized is not None:
                lines.append(f"    fixed to {symbol.specialized.value}: {symbol.specialized.reason}")
            for guard in self.guards:
                if symbol.symbol in guard.symbols:
                    lines.append(f"    {guard.expression}{_place_text(guard.place)}")
            if symbol.narrowed != symbol.range:
                lines.append(f"    so it is in {_range_text(symbol.narrowed)}")
        return "\n".join(lines) + "\n"


def _place_data(place: SymbolPlace | None) -> dict[str, Any] | None:
    return None if place is None else {"file": place.file, "line": place.line, "function": place.function}


def _place_text(place: SymbolPlace | None) -> str:
    return f"  ({place.file}:{place.line} in {place.function})" if place is not None else ""


def _range_text(bounds: Bounds) -> str:
    low, high = bounds
    return f"[{'-∞' if low is None else low}, {'∞' if high is None else high}]"


def _bounds(text: str) -> Bounds:
    """PyTorch's ``[2, int_oo]`` (``VR[2, 9]`` in torch 2.9)."""
    found = re.search(r"\[(-?\w+), (-?\w+)\]", text)
    return (_number(found[1]), _number(found[2])) if found else (None, None)


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _narrowed(bounds: Bounds, name: str, expression: str) -> Bounds:
    """By conditions such as ``s <= 4096``."""
    low, high = bounds
    text = re.sub(r"^Eq\((\w+), (-?\w+)\)$", r"\1 == \2", expression.strip())
    found = re.fullmatch(r"(-?\w+) (<=|<|>=|>|==) (-?\w+)", text)
    if found is None:
        return bounds
    left, sign, right = found.groups()
    if right == name:
        left, right = right, left
        sign = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}.get(sign, sign)
    value = _number(right)
    if left != name or value is None:
        return bounds
    if sign in ("<=", "<", "=="):
        most = value - (sign == "<")
        high = most if high is None else min(high, most)
    if sign in (">=", ">", "=="):
        least = value + (sign == ">")
        low = least if low is None else max(low, least)
    return (low, high)


def symbols_of(data: Any) -> dict[str, SymbolFacts]:
    """What the data of a stage says of each symbol, by name.  Raises LookupError or TypeError for data from elsewhere."""
    symbols = {}
    for entry in data.get("symbols", ()) if isinstance(data, dict) else ():
        low, high = entry["narrowed"]
        symbols[entry["symbol"]] = SymbolFacts(entry["symbol"], entry["hint"], entry["source"], low, high)
    return symbols
