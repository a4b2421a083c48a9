"""The limits of a run: which of them is reached, and what the user is told then."""

from __future__ import annotations

import time

from irscope import processes
from irscope.protocol import Budget, Limit, LimitReached

_SAMPLE_SECONDS = 0.1


class Limits:
    """Watches over the limits of one run that can be seen from outside its process.

    Parameters
    ----------
    budget
        The limits.
    started
        When the run began, on the monotonic clock.
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
        """Whether a limit is reached by now; `pid` is the process at the root of the run."""
        now, budget = time.monotonic(), self._budget
        if budget.seconds is not None and now - self._started > budget.seconds:
            self._reach(Limit.SECONDS, _SECONDS.format(seconds=budget.seconds))
        if budget.output is not None and self._printed > budget.output:
            self._reach(Limit.OUTPUT, _OUTPUT.format(budget=_size(budget.output)))
        if budget.memory is not None and self.reached is None and now >= self._next_sample:
            held = _held(pid, budget.memory)
            if held > budget.memory:
                self._reach(Limit.MEMORY, _MEMORY.format(held=_size(held), budget=_size(budget.memory)))
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
    "Stopped after {seconds:g} s, the budget of seconds; what was found until then is kept. To let it run longer raise "
    "--budget (settings irscope.run.budgetSeconds and irscope.run.deepBudgetSeconds), or let the script do fewer steps."
)
_OUTPUT = (
    "Stopped after it had printed {budget}, the budget of output; that output and what was found until then are kept. "
    "Print less, or raise --output-budget (setting irscope.run.outputBudgetMegabytes)."
)
_MEMORY = (
    "Stopped because its processes held {held} of memory together (proportional set size), more than the budget of "
    "{budget}; what was found until then is kept. Use smaller inputs or fewer worker processes, or raise "
    "--memory-budget (setting irscope.run.memoryBudgetMegabytes)."
)


def steady_message(calls: int, seconds: float) -> str:
    """For a run that is stopped in its steady state."""
    return (
        f"Stopped in a steady state: nothing was compiled or found during the last {calls} calls of compiled code "
        f"({seconds:.0f} s); what was found until then is kept, and what the script does later was not run. To let it "
        "go on raise --steady-calls (setting irscope.run.steadyCalls), or switch that limit off with 0."
    )


def _size(bytes: int) -> str:
    return f"{bytes / 1e9:.1f} GB" if bytes >= 1e9 else f"{bytes / 1e6:.4g} MB"
