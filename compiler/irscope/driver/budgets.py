"""The limits of a run: which of them is reached, and what the user is told then."""

from __future__ import annotations

import time

from irscope.protocol import Budget, Limit, LimitReached
from irscope.system import processes
from irscope.vocabulary.limits import limit_row
from irscope.vocabulary.units import size

_SAMPLE_SECONDS = 0.1


class Limits:
    """Watches over the limits of one run that can be seen from outside its process.

    Args:
        budget: The limits.
        started: When the run began, on the monotonic clock.
    """

    def __init__(self, budget: Budget, started: float) -> None:
        self._budget, self._started = budget, started
        self._printed = 0
        self._next_sample = 0.0
        self.reached: Limit | None = None
        """The first limit that was reached, for good."""
        self.message = ""

    @property
    def need_looks(self) -> bool:
        """Whether there is one that is reached without a word from the run's process."""
        return self._budget.seconds is not None or self._budget.memory is not None

    def printed(self, bytes: int) -> None:
        """The script has printed that much more."""
        self._printed += bytes

    def told(self, message: LimitReached) -> None:
        """The run's process has seen by itself that a limit is reached."""
        self._reach(message.limit, message.message)

    def look(self, pid: int) -> Limit | None:
        """Whether a limit is reached now; `pid` is the process at the root of the run."""
        now, budget = time.monotonic(), self._budget
        if budget.seconds is not None and now - self._started > budget.seconds:
            self._reach(Limit.SECONDS, _SECONDS.format(seconds=budget.seconds))
        if budget.output is not None and self._printed > budget.output:
            self._reach(Limit.OUTPUT, _OUTPUT.format(budget=size(budget.output)))
        if budget.memory is not None and self.reached is None and now >= self._next_sample:
            held = _held(pid, budget.memory)
            if held > budget.memory:
                self._reach(Limit.MEMORY, _MEMORY.format(held=size(held), budget=size(budget.memory)))
            self._next_sample = time.monotonic() + _SAMPLE_SECONDS
        return self.reached

    def _reach(self, limit: Limit, message: str) -> None:
        if self.reached is None:
            self.reached, self.message = limit, message


def _held(pid: int, enough: int) -> int:
    """Bytes that a process and its descendants hold together; not more exact than is needed to compare."""
    pids = processes.tree(pid)
    upper = processes.resident_bytes(pids)
    # The exact figure is dear, so it is asked for only where the cheap one is over the limit.
    return processes.proportional_bytes(pids) if upper > enough else upper


_SECONDS = (
    "Stopped after {seconds:g} s (time limit). Findings up to then are kept. To run longer, raise "
    f"{limit_row(Limit.SECONDS).where}, or run fewer steps."
)
_OUTPUT = (
    "Stopped after it printed {budget} (output limit). That output and the findings up to then are kept. "
    f"Print less, or raise {limit_row(Limit.OUTPUT).where}."
)
_MEMORY = (
    "Stopped because its processes held {held} of memory together (proportional set size), more than the limit of "
    "{budget}. Findings up to then are kept. Use smaller inputs or fewer worker processes, or raise "
    f"{limit_row(Limit.MEMORY).where}."
)
