"""What a changed text leaves out of what the original does: calls and changes with effects.

Two texts are compared by their syntax.  An effect is kept if the changed text has it as well, inside of a function as
before, in as many loops, and with nothing more in front of it that may keep it from being done: a condition, or a return.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from itertools import groupby

from irscope.usercode.effect_places import Effect, Written
from irscope.usercode.source import parse_text

_NOTHING = ("import ", "from ", "pass", "'", '"')
_APART = tuple(
    f"{one}."
    for one in ("datetime", "json", "numpy.random", "os", "pathlib", "random", "secrets", "subprocess", "time", "uuid")
)


def left_out(before: str, after: str) -> str:
    """What a changed text leaves out, in a sentence; empty if it keeps all effects, or is not Python: its run fails then."""
    old, new = _parsed(before), parse_text(after)
    if old is None or new is None:
        return ""
    try:
        return _lost(old, new)
    except RecursionError:
        return "It is nested too deeply to say what it leaves out."


_parsed = functools.lru_cache(maxsize=4)(parse_text)
"""Many changes are made of one text."""


@functools.lru_cache(maxsize=4)
def _original(tree: ast.Module) -> Written:
    return Written(tree)


def _lost(old: ast.Module, new: ast.Module) -> str:
    first, second = _original(old), Written(new, _original(old).functions)
    # What only binds a name, as the original does, stands for nothing else.
    bound = {(one.key, one.text) for one in first.effects if one.compared and not one.needed}
    others = [one for one in second.effects if not one.compared or one.needed or (one.key, one.text) not in bound]
    kept = {key: list(effects) for key, effects in groupby(sorted(others, key=_key), _key)}
    for effect in sorted(first.effects, key=lambda one: (len(one.place.tests), one.order)):
        if not effect.needed or effect.place.off:
            continue
        alike = [one for one in kept.get(effect.key, ()) if one.stands_for(effect)]
        if not alike:
            return _words(effect, second)
        name = effect.place.name
        chosen = max(alike, key=lambda one: (one.place.name == name, one.needed, len(one.place.tests), -one.order))
        kept[effect.key].remove(chosen)
        if _is_overtaken(effect, chosen, first, second):
            return f"This does `{effect.text}` at another time."
    more = Counter(second.marks) - Counter(first.marks)
    return next(iter(more), "")


def _key(effect: Effect) -> str:
    return effect.key


def _words(effect: Effect, after: Written) -> str:
    alike = [one.place for one in after.effects if one.key == effect.key]
    if any(place.off for place in alike):
        return f"This leaves out `{effect.text}` while compiling."
    return (
        f"This does `{effect.text}` at another time, or not always." if alike else f"This leaves out `{effect.text}`."
    )


def _is_overtaken(effect: Effect, chosen: Effect, before: Written, after: Written) -> bool:
    """Whether a statement that came before an effect comes after it, as where the effect alone was moved."""
    if effect.place.function is None or (effect.names and all(map(_is_apart, effect.names))):
        return False
    home = chosen.place.name
    if home == effect.place.name and before.lines.get(home) == after.lines.get(home):
        return False

    def calls(function: str, other: str, orders: range) -> bool:
        """Whether one function calls another, in statements with some numbers."""
        call = re.compile(rf"\b{re.escape(other.rpartition('.')[2])}\(")
        rows = ((text, row) for text, rows in after.statements.items() if call.search(text) for row in rows)
        return any(name == function and order in orders for _, (name, order) in rows)

    acting = [one.text for one in before.effects if one.needed and one.key.startswith("call ")]
    changed = effect.key.rpartition(".")[2] if effect.key.startswith("change ") else ""
    for text, rows in before.statements.items():
        if not any(name == effect.place.name and order < effect.order for name, order in rows) or effect.text in text:
            continue
        if changed and changed not in text and not any(one in text for one in acting):
            continue  # it neither reads what is changed, nor may it do so
        is_behind = False
        for name, order in after.statements.get(text, ()):
            if name == home:
                is_ahead = order < chosen.order
            else:
                is_ahead = calls(home, name, range(chosen.order)) or calls(name, home, range(order, sys.maxsize))
            if is_ahead:
                break
            is_behind |= name == home or calls(home, name, range(chosen.order, sys.maxsize))
        else:
            if is_behind and not text.startswith(_NOTHING):
                return True
    return False


def _is_apart(name: str) -> bool:
    """Whether a function acts on nothing that tensors are made of: it draws a number, waits, or reads a file."""
    return name.startswith(_APART) and not name.endswith(".shuffle")
