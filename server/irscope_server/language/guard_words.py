"""Guards in words: what is checked of an argument before compiled code runs, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from irscope.ir.guard_text import readable
from irscope.ir.guards import Guard, GuardList, on_argument
from irscope.vocabulary import units

from irscope_server.base import words

_MOST_ROWS = 12
_MOST_COMPILES = 8
_TENSOR = re.compile(
    r"^check_tensor\(.*?, (?P<type>[\w.]+), DispatchKeySet\((?P<keys>[^)]*)\), torch\.(?P<dtype>\w+), device=(?P<device>\w+), "
    r"requires_grad=(?P<grad>\w+), size=\[(?P<size>[^\]]*)\], stride=\[(?P<stride>[^\]]*)\]\)"
)
_TYPE = re.compile(r",? type=<(?:class )?'?(?P<type>[^'>]+)'?>\)?$")
_KEPT_FOR_LAST = "DIMENSION_DYNAMIC_MARKING_GUARD"


def argument_text(name: str, lists: Sequence[GuardList], uri_of: Callable[[str], str]) -> str:
    """The guards on an argument of a compiled function; empty if there are none.

    Args:
        lists: The guards of the compiles of the function.
        uri_of: The URI of a file.
    """
    rows: dict[tuple[object, ...], tuple[Guard, int, list[str]]] = {}
    for guards in lists:
        for guard in on_argument(guards.guards, name):
            # The marks of a tensor's dimensions are several guards and one thing to say.
            key = (guard.source if guard.kind == _KEPT_FOR_LAST else guard.check, guard.kind, guard.origin)
            first, failed, compiles = rows.get(key, (guard, 0, []))
            compiles = compiles if guards.compile in compiles else [*compiles, guards.compile]
            rows[key] = (first, max(failed, guard.failed), compiles)
    if not rows:
        return ""
    # The guards that failed come first; marks of dimensions, of which every tensor has some, last.
    ordered = sorted(rows.values(), key=lambda row: (-row[1], row[0].kind == _KEPT_FOR_LAST))
    lines = []
    for guard, failed, compiles in ordered[:_MOST_ROWS]:
        origin = guard.origin
        place = f" · [line {origin.line}]({uri_of(origin.file)}#L{origin.line})" if origin is not None else ""
        cost = f" · {units.duration(guard.nanoseconds / 1e9)}" if guard.nanoseconds is not None else ""
        often = f" · **failed {units.count(failed, 'time')}**" if failed else ""
        lines.append(f"- {check_text(guard)}{place}{cost}{often} · {_names(compiles)}")
    more = len(ordered) - _MOST_ROWS
    if more > 0:
        lines.append(f"- and {more} more")
    return "\n".join([f"**{words.code_span(name)}** is checked before compiled code runs:", "", *lines])


def latency_text(lists: Sequence[GuardList]) -> str:
    """How many guards the compiles of a function have, and how long one check of all of them takes."""
    parts = []
    for guards in lists[:_MOST_COMPILES]:
        time = "" if guards.latency is None else f", {units.duration(guards.latency / 1e6)}"
        parts.append(f"{words.code_span(guards.compile)} {len(guards.guards)}{time}")
    more = len(lists) - _MOST_COMPILES
    if more > 0:
        parts.append(f"{more} more")
    return f"Guards, and the time of one check of them all: {' · '.join(parts)}" if parts else ""


def check_text(guard: Guard) -> str:
    """One guard's condition as Markdown, in the words of the user's code."""
    source = words.code_span(guard.source)
    if match := _TENSOR.match(guard.check):
        grad = "requires grad" if match["grad"] == "True" else "no grad"
        size = match["size"].replace("None", "any")
        stride = match["stride"].replace("None", "any")
        device = "" if match["device"] == "None" else f", device {match['device']}"
        facts = f"{match['dtype']}, size [{size}], stride [{stride}]{device}, {grad}"
        return f"{source} is a {words.code_span(match['type'])}: {words.markdown(facts)}"
    if guard.kind == _KEPT_FOR_LAST:
        return f"the marks of dimensions of {source} (for example `mark_dynamic`)"
    type = _TYPE.search(guard.check)
    if "check_type_id" in guard.check:
        return f"{source} is of type {words.code_span(type['type'])}" if type else f"the type of {source} is the same"
    if "check_obj_id" in guard.check:
        return f"{source} is the same object" + (f" (of type {words.code_span(type['type'])})" if type else "")
    check = readable(guard.check[: type.start()] if type else guard.check)
    return words.code_span(check if len(check) <= 120 else check[:119] + "…")


def _names(compiles: Sequence[str]) -> str:
    shown = ", ".join(words.code_span(name) for name in compiles[:_MOST_COMPILES])
    return shown + (f" and {len(compiles) - _MOST_COMPILES} more" if len(compiles) > _MOST_COMPILES else "")
