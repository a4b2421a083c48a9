"""How long a process takes to answer, whatever else the machine does meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from support import stalled

_MILLION = 1e6
_BILLION = 1e9


@dataclass(frozen=True)
class Asking:
    """A process that is asked something now.

    Parameters
    ----------
    starts_others
        It starts processes for the answer.  When they have ended, nobody knows how long they have waited for a processor;
        then that of the whole machine counts.
    """

    pid: int
    starts_others: bool = False
    _clock: float = field(default_factory=time.monotonic, init=False)
    _stalled: tuple[float, float] = field(default_factory=lambda: (stalled(), _stalled_by_disk()), init=False)
    _computed: float = field(default=0.0, init=False)
    _waited: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_computed", _computed(self.pid))
        object.__setattr__(self, "_waited", self._waits())

    def passed(self) -> float:
        """Seconds since then by the clock."""
        return time.monotonic() - self._clock

    def seconds(self) -> float:
        """Seconds since then in which it computed, or waited for anything but a processor and a disk.

        A process that others keep from its processor, or that has the lowest priority, takes no longer by this.  One that
        sleeps does.
        """
        passed = self.passed() - max(0.0, _stalled_by_disk() - self._stalled[1])
        waits = sum(max(0.0, now - self._waited.get(task, 0.0)) for task, now in self._waits().items())
        waits = max(waits, stalled() - self._stalled[0]) if self.starts_others else waits
        return max(passed - waits, _computed(self.pid) - self._computed)

    def _waits(self) -> dict[str, float]:
        """Seconds that each thread of it, and of this process, which asks, has waited for a processor."""
        found = {}
        for pid in {self.pid, os.getpid()}:
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        text = Path(f"/proc/{pid}/task/{task}/schedstat").read_text()
                        found[task] = int(text.split()[1]) / _BILLION
        return found


def _computed(pid: int) -> float:
    """Seconds of a process, and of what it started that has ended; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _stalled_by_disk() -> float:
    """Seconds in which some process of this machine has waited for a disk; 0 where the system does not tell."""
    try:
        first = Path("/proc/pressure/io").read_text().split("\n")[0]
        return int(first.rpartition("total=")[2]) / _MILLION
    except (OSError, ValueError):
        return 0.0
