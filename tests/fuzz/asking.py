"""How long a process takes to answer, whatever else the machine does meanwhile."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from support import Instant, passed_at_this_load, stalled

_MILLION = 1e6
_REFRESHED_SECONDS = 2.1
"""After these, what the system tells of waiting is true of the moment before: it counts every two seconds."""


@dataclass(frozen=True)
class Asking:
    """A process that is asked something now."""

    pid: int
    _begun: Instant = field(default_factory=Instant, init=False)
    _disk: float = field(default_factory=lambda: _stalled_by_disk(), init=False)
    _computed: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_computed", _computed(self.pid))

    def over(self, most: float) -> float:
        """Seconds since then in which it computed, or in which nothing on this machine waited for a processor or a disk;
        0 if these are no more than so many.

        A process that others keep from its processor, or that has the lowest priority, takes no longer by this; neither
        does one that waits for a process of its own to which that happens.  That it sleeps is seen only on a machine that
        has time for it.
        """
        passed = self.passed()
        if passed <= most or self._seconds(passed) <= most:
            return 0.0
        time.sleep(_REFRESHED_SECONDS)
        seconds = self._seconds(passed)
        return seconds if seconds > most else 0.0

    def passed(self) -> float:
        """Seconds since then by the clock."""
        return time.monotonic() - self._begun

    def _seconds(self, passed: float) -> float:
        if not stalled():  # the system does not tell
            return passed_at_this_load(self._begun)
        waited = stalled() - self._begun.stalled + _stalled_by_disk() - self._disk
        return max(passed - waited, _computed(self.pid) - self._computed)


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
