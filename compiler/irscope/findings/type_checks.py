"""Libraries that check types and shapes at each call, as jaxtyping and beartype do: Dynamo traces their checks, too.

Up to PyTorch 2.13 such a check fails in compiled code; from 2.14 on it breaks the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.events.stack import FramePlace
from irscope.findings.deliberate import shown, words
from irscope.fixing.advice.model import Option, Words

CUSTOM_CHECK = "GB2736"
"""The break at an ``isinstance`` with a check of the type's own."""
_LIBRARIES = re.compile(r"/(?P<library>jaxtyping|beartype|typeguard)/")


def library_of(files: Iterable[str]) -> str:
    """The library of type checks that has the first of some files; empty if none has one."""
    matches = (_LIBRARIES.search(file.replace("\\", "/")) for file in files)
    return next((match["library"] for match in matches if match is not None), "")


def hints_for(library: str) -> tuple[str, ...]:
    """What keeps the checks of a library out of compiled code."""
    outside = f"Check outside and compile inside: put `@torch.compile` directly above the function, below the decorator of `{library}`, and call the function itself."
    off = "Or run without the checks: the variable `JAXTYPING_DISABLE=1`."
    return (outside, off) if library == "jaxtyping" else (outside,)


def words_of(place: FramePlace, whole: str, library: str) -> Words:
    """The words of a break in a check.

    Args:
        whole: What runs as plain Python; empty if the graph is cut.
    """
    what = f"{shown(place)} checks types by `{library}`, and Dynamo does not trace the check of a type that says a shape or a dtype"
    return words(
        what,
        whole,
        "Such a type has its own `__instancecheck__`.",
        tuple(Option(hint.removesuffix(".")) for hint in hints_for(library)),
    )
