"""What a guarded value is now, at the call that did not fit.

PyTorch's reason says what the value was when the function was compiled.  What it is now is in the frame that is about to
be compiled again.
"""

from __future__ import annotations

import re
from typing import Any

from irscope.internals.dynamo_frames import variables_of_the_call

_STEP = re.compile(r"\.(?P<attribute>[^\W\d]\w*)|\[(?P<key>'[^']*'|\d+)\]")
_LONGEST = 40


def value_now(source: str) -> str | None:
    """The value of a guard's source (``factor``, ``self.scale``, ``sizes[0]``) as text.

    Only numbers, strings, booleans and None are shown, and no code of the user is called to find them: attributes
    are read from instance dictionaries, items from plain lists, tuples and dicts.
    """
    root = re.match(r"[^\W\d]\w*", source)
    if root is None:
        return None
    for names in variables_of_the_call():
        if root[0] in names:
            return _text(_follow(names[root[0]], source[root.end() :]))
    return None


_MISSING = object()


def _follow(value: Any, path: str) -> Any:
    while path:
        match = _STEP.match(path)
        if match is None:
            return _MISSING
        path = path[match.end() :]
        if match["attribute"]:
            value = _attribute(value, match["attribute"])
        elif type(value) in (list, tuple) and match["key"].isdigit() and int(match["key"]) < len(value):
            value = value[int(match["key"])]
        elif type(value) is dict and match["key"].startswith("'"):
            value = value.get(match["key"][1:-1], _MISSING)
        else:
            return _MISSING
    return value


def _attribute(value: Any, name: str) -> Any:
    try:
        own: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return _MISSING
    for names in (own, own.get("_modules"), own.get("_parameters"), own.get("_buffers")):
        if isinstance(names, dict) and name in names:
            return names[name]
    return vars(type(value)).get(name, _MISSING)


def _text(value: Any) -> str | None:
    if value is None or type(value) in (bool, int, float, str):
        text = repr(value)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return None
