"""The steady state of a run: compiled code is called on and on, and nothing new comes of it.

A training loop would go on for hours after it has shown all that there is to see.  Every call that reaches compiled
code first looks for a compile whose guards hold; Dynamo has a hook that is called then, in C++ and whoever the caller
is, library code too.  Counting there costs next to nothing (``benchmarks/counting.py`` measures it), puts no frame under
the compiled code, and works for every back end.
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable
from typing import Any

from irscope.budgets import steady_message
from irscope.capture.hooks import Hook, Undo
from irscope.protocol import Compile, CompileOutcome, Finding, Limit, LimitReached

QUIET_SECONDS = 3.0
"""A loop of short steps would be over its number of calls in no time, before the end of its first epoch, where a
smaller last batch may come; so this much time without anything new must have passed, too."""


class SteadyState:
    """Counts calls of compiled code since something new came.

    Parameters
    ----------
    calls
        So many calls *for each compile so far*: a step that goes through ten compiled pieces makes ten calls.
    reached
        Called once, when the state is steady.
    """

    def __init__(self, calls: int, reached: Callable[[LimitReached], None]) -> None:
        self._each, self._reached = calls, reached
        self._compiled: set[str] = set()
        self._causes: set[object] = set()
        self._calls, self._enough = 0, calls
        self._since = time.monotonic()

    def compile_changed(self, compile: Compile) -> None:
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
        return Hook(
            "calls of compiled code, so a run in a steady state is not stopped",
            "torch._dynamo.eval_frame",
            "2.9 to 2.13",
            self._apply,
        )

    def _apply(self, eval_frame: types.ModuleType) -> Undo:
        # `torch.compiler.set_enable_guard_collectives` is the other user of this hook.  A script that calls it has its
        # own way: ours is gone then.
        set_hook: Any = eval_frame.set_guard_complete_hook
        before = set_hook(self._called)
        if before is not None:
            set_hook(before)
            raise RuntimeError("the guard-complete hook is in use")
        return lambda: set_hook(None)

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
        self._reached(LimitReached(Limit.STEADY_STATE, steady_message(self._calls, quiet)))
