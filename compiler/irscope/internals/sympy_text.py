"""Symbolic expressions as text, each printed once.

Most of what it takes to print an IR goes into sympy, which prints the same few expressions over and over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from irscope.internals.frames import report
from irscope.internals.names import PrivateName
from irscope.protocol import CaptureGap

_PRINTABLE = PrivateName(
    "symbolic expressions, each printed once: it takes longer",
    "sympy.core._print_helpers",
    "Printable",
    "2.13 (with sympy 1.14)",
)


@contextmanager
def remembered_text() -> Iterator[None]:
    """While it lasts, an expression that was printed is not printed again; the text is sympy's, character by character.

    Equal expressions of one type print alike, and expressions never change.  Where sympy is not as expected nothing is
    remembered, which leaves a gap, and everything prints as ever.
    """
    printable = _PRINTABLE.find()
    if printable is None:
        yield
        return
    before = {name: vars(printable).get(name) for name in ("__str__", "__repr__")}
    if not all(before.values()) or len(set(before.values())) != 1:
        report(CaptureGap(_PRINTABLE.what, f"it prints in another way; checked on torch {_PRINTABLE.versions}"))
        yield
        return
    original: Any = before["__str__"]
    known: dict[Any, str] = {}

    def text(self: Any) -> str:
        key = (type(self), self)
        try:
            found = known.get(key)
        except TypeError:  # a matrix that can change has no hash
            return str(original(self))
        if found is None:
            found = known[key] = str(original(self))
        return found

    printable.__str__ = printable.__repr__ = text
    try:
        yield
    finally:
        printable.__str__, printable.__repr__ = before["__str__"], before["__repr__"]
