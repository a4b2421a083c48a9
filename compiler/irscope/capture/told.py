"""What a record of a stored trace tells about the moment at which it was written.

A live record is handled on the stack of its event.  Of a stored one there is only text: `at` makes that the answer to the
questions for the stack, until the record is handled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.capture.stack import FramePlace


@dataclass(frozen=True)
class Told:
    """A moment, as a trace tells it.

    Parameters
    ----------
    live
        The user's frames on the Python stack, outermost first.
    traced
        The frames that Dynamo was tracing, outermost first.
    call
        The user's call that entered the compiled code; None if the trace does not tell.
    error
        What stands for the exception in flight.
    fullgraph
        Whether a graph break was an error there.
    """

    live: tuple[FramePlace, ...] = ()
    traced: tuple[FramePlace, ...] = ()
    call: FramePlace | None = None
    error: BaseException | None = None
    fullgraph: bool = False


class _Now:
    """One trace is read at a time in a process."""

    told: Told | None = None


@contextlib.contextmanager
def at(told: Told) -> Iterator[None]:
    """While a record of a stored trace is handled."""
    before, _Now.told = _Now.told, told
    try:
        yield
    finally:
        _Now.told = before


def told_now() -> Told | None:
    """What the trace tells; None for a live record, whose stack is there."""
    return _Now.told
