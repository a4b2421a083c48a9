"""How the module of a kind says which events it wants and what it makes of them.

A module of `irscope.findings.kinds` that detects something has a tuple ``DETECTORS``; `irscope.findings.book` asks
each detector when its event happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from irscope.events.listening import LogHandler
from irscope.internals.hooks import Hook
from irscope.protocol import Finding
from irscope.vocabulary.records import dataclass

Receive = Callable[..., None]
"""Takes the data of a signal."""


@dataclass(frozen=True)
class Detector:
    """Turns one event into findings.

    Args:
        event: The name of an event of PyTorch's trace, or of a signal: an event that leaves no record in the trace.
        detect: Called with the `Moment` and, for a signal, with its data; returns the findings, which may be none.
        hook: Makes the hook that sends the signal; gets what receives the signal's data.
        handler: Makes the log handler that sends the signal; gets what receives the signal's data.
    """

    event: str
    detect: Callable[..., Iterable[Finding]]
    hook: Callable[[Receive], Hook] | None = None
    handler: Callable[[Receive], LogHandler] | None = None
