"""The steady state of a run: compiled code is called repeatedly, and nothing new appears.

A training loop would go on for hours after it has shown all that there is to see.  Every call that reaches compiled
code first looks for a compile whose guards hold; Dynamo has a hook that is called then, in C++ and for every caller
(library code too).  Counting there costs almost nothing (``benchmarks/counting.py`` measures it), puts no frame under
the compiled code, and works for every backend.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from irscope.internals.dynamo_hooks import guards_hook
from irscope.internals.hooks import Hook
from irscope.protocol import Compile, CompileOutcome, Finding, Limit, LimitReached
from irscope.vocabulary.limits import limit_row
from irscope.vocabulary.units import count, duration

QUIET_SECONDS = 3.0
"""A loop of short steps would be over its number of calls in no time, before the end of its first epoch, where a
smaller last batch may come; so this much time without anything new must have passed, too."""


class SteadyState:
    """Counts calls of compiled code since something new came.

    Args:
        calls: This many calls *for each compile so far*: a step that goes through ten compiled pieces makes ten calls.
        reached: Called once, when the state is steady.
    """

    def __init__(self, calls: int, reached: Callable[[LimitReached], None]) -> None:
        self._each, self._reached = calls, reached
        self._compiled: set[str] = set()
        self._causes: set[object] = set()
        self._calls, self._enough = 0, calls
        self._since = time.monotonic()

    def compile_changed(self, compile: Compile) -> None:
        """A compile is new or changed, so the steady state begins later."""
        if compile.outcome in (CompileOutcome.COMPILED, CompileOutcome.GRAPH_BREAK):
            self._compiled.add(compile.id)
        self._something_new()

    def found(self, finding: Finding) -> None:
        """A finding that was there before and only happened once more is not new."""
        if finding.cause not in self._causes:
            self._causes.add(finding.cause)
            self._something_new()

    def _something_new(self) -> None:
        self._calls, self._enough = 0, self._each * max(1, len(self._compiled))
        self._since = time.monotonic()

    def hook(self) -> Hook:
        """The hook through which it sees the calls of compiled code."""
        return guards_hook(self._called)

    def _called(self, hit: bool) -> bool:
        """Whether guards held; what is returned is taken for the answer."""
        self._calls += 1
        if self._calls >= self._enough:
            self._look()
        return hit

    def _look(self) -> None:
        quiet = time.monotonic() - self._since
        if quiet < QUIET_SECONDS:
            self._enough = self._calls + max(1, self._each // 8)  # not at every call
            return
        self._enough = 1 << 62
        self._reached(LimitReached(Limit.STEADY_STATE, _message(self._calls, quiet)))


def _message(calls: int, seconds: float) -> str:
    """What the user is told when a run is stopped in its steady state."""
    return (
        f"Stopped: no new compile or finding in the last {count(calls, 'call')} of compiled code "
        f"({duration(seconds)}). Findings up to then are kept; the rest of the script was not run. To run it to the end, "
        f"raise {limit_row(Limit.STEADY_STATE).where}, or set that limit to 0."
    )
