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
from collections.abc import Iterator
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
    return any(_comes_after(statement, chosen, after) for statement in _statements_before(effect, before))


def _statements_before(effect: Effect, original: Written) -> Iterator[str]:
    """What comes before an effect in its function, and may matter to it."""
    acting = [other.text for other in original.effects if other.needed and other.key.startswith("call ")]
    changed = effect.key.rpartition(".")[2] if effect.key.startswith("change ") else ""
    for text, places in original.statements.items():
        is_before = any(name == effect.place.name and order < effect.order for name, order in places)
        if not is_before or effect.text in text or text.startswith(_NOTHING):
            continue
        # Any other one neither reads what is changed, nor may it do so.
        if not changed or changed in text or any(action in text for action in acting):
            yield text


def _comes_after(statement: str, effect: Effect, written: Written) -> bool:
    """Whether a statement is only done after an effect, in its function or through calls."""
    home = effect.place.name
    is_behind = False
    for name, order in written.statements.get(statement, ()):
        if name == home:
            is_ahead = order < effect.order
        else:
            is_ahead = _calls(written, home, name, range(effect.order)) or _calls(
                written, name, home, range(order, sys.maxsize)
            )
        if is_ahead:
            return False
        is_behind |= name == home or _calls(written, home, name, range(effect.order, sys.maxsize))
    return is_behind


def _calls(written: Written, function: str, other: str, orders: range) -> bool:
    """Whether one function calls another, in statements with some numbers."""
    call = re.compile(rf"\b{re.escape(other.rpartition('.')[2])}\(")
    callers = (place for text, places in written.statements.items() if call.search(text) for place in places)
    return any(name == function and order in orders for name, order in callers)


def _is_apart(name: str) -> bool:
    """Whether a function acts on nothing that tensors are made of: it draws a number, waits, or reads a file."""
    return name.startswith(_APART) and not name.endswith(".shuffle")
