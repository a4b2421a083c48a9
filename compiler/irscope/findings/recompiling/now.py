"""What a guarded value is now, at the call that did not fit.

PyTorch's reason says what the value was when the function was compiled.  What it is now is in the frame that is about to
be compiled again.
"""

from __future__ import annotations

import enum
import re
import sys
import types
from collections import deque
from typing import Any

from irscope.findings.recompiling.facts import Now
from irscope.internals.dynamo_frames import RESUMED_INSIDE, variables_of_the_call
from irscope.internals.failing_guards import MISSING
from irscope.ir.guard_text import type_name

_STEP = re.compile(r"\.(?P<attribute>[^\W\d]\w*)|\[(?P<key>'[^']*'|\d+)\]")
_LONGEST = 40
_RESUMED = re.compile(r"__nested_frame_values\[(?P<function>\d+)\]\[(?P<index>\d+)\](?P<rest>.*)", re.DOTALL)
_OWN_ARGUMENTS = 2
"""The first arguments of a resume function are not variables: what it calls first, and the variables of that."""
_CELL = re.compile(r"^(?P<function>.+)\.__closure__\[(?P<index>\d+)\]\.cell_contents(?P<rest>.*)$")


def now(source: str) -> Now:
    """What a guard's source (``factor``, ``self.scale``, ``sizes[0]``, ``len(xs)``) is.

    Only numbers, strings, booleans, None and lengths are shown, and no code of the user is called to find them:
    attributes are read from instance dictionaries, items and lengths from plain lists, tuples and dicts.
    """
    if source.startswith("len(") and source.endswith(")"):
        thing = value_of(source[4:-1])
        if type(thing) not in (list, tuple, dict, set, str, deque):
            return Now()
        return Now(str(len(thing)), "int", container=type(thing).__name__)
    thing = value_of(source)
    if thing is MISSING:
        return Now()
    kind = type_name(f"{type(thing).__module__}.{type(thing).__qualname__}")
    owner = value_of(source.rpartition(".")[0]) if "." in source else None
    is_member = isinstance(type(thing), enum.EnumMeta)
    return Now(_text(thing), kind, isinstance(owner, sys.modules["torch"].nn.Module), is_member=is_member)


def free_variable(source: str) -> str:
    """The source with the name of a closure's variable, if PyTorch has a number: for
    ``g.__closure__[0].cell_contents`` it is ``limit``; and of a variable of a function that goes on with nested graph
    breaks."""
    if (match := _CELL.match(source)) is not None:
        code = getattr(value_of(match["function"]), "__code__", None)
        names = code.co_freevars if isinstance(code, types.CodeType) else ()
    elif (match := _RESUMED.match(source)) is not None:
        code = getattr(value_of(f"{RESUMED_INSIDE}[{match['function']}]"), "__code__", None)
        names = code.co_varnames[_OWN_ARGUMENTS:] if isinstance(code, types.CodeType) else ()
    else:
        return source
    index = int(match["index"])
    return f"{names[index]}{match['rest']}" if index < len(names) else source


def value_of(source: str) -> Any:
    """What a guard's source names, or `MISSING`; no code of the user is called."""
    if (cell := _CELL.match(source)) is not None:
        return _follow(_cell(value_of(cell["function"]), int(cell["index"])), cell["rest"])
    root = re.match(r"[^\W\d]\w*", source)
    for names in variables_of_the_call() if root is not None else ():
        if root is not None and root[0] in names:
            return _follow(names[root[0]], source[root.end() :])
    return MISSING


def _cell(function: Any, index: int) -> Any:
    cells = function.__closure__ or () if type(function) is types.FunctionType else ()
    try:
        return cells[index].cell_contents
    except (IndexError, ValueError):  # an empty cell
        return MISSING


def _follow(value: Any, path: str) -> Any:
    while path:
        match = _STEP.match(path)
        if match is None:
            return MISSING
        path = path[match.end() :]
        if match["attribute"]:
            value = _attribute(value, match["attribute"])
        elif type(value) in (list, tuple) and match["key"].isdigit() and int(match["key"]) < len(value):
            value = value[int(match["key"])]
        elif match["key"].isdigit() and isinstance(value, sys.modules["torch"].nn.Module):  # a part of a ModuleList
            value = _attribute(value, match["key"])
        elif type(value) is dict and match["key"].startswith("'"):
            value = value.get(match["key"][1:-1], MISSING)
        else:
            return MISSING
    return value


def _attribute(value: Any, name: str) -> Any:
    if type(value) is types.FunctionType and name == "__code__":
        return value.__code__
    try:
        own: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return MISSING
    for names in (own, own.get("_modules"), own.get("_parameters"), own.get("_buffers")):
        if isinstance(names, dict) and name in names:
            return names[name]
    of_class = vars(type(value)).get(name, MISSING)
    return MISSING if hasattr(type(of_class), "__get__") else of_class  # a property is code; a slot is not the value


def _text(value: Any) -> str | None:
    if value is None or type(value) in (bool, int, float, str):
        text = repr(value)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return None
