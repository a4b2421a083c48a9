"""Has Python write the stack into the message pipe when a signal such as SIGSEGV ends the process."""

from __future__ import annotations

import faulthandler


def report_faults(fd: int) -> None:
    """Until the script sets up its own handler; one that is there already (``-X faulthandler``) stays.

    The process ends by the same signal.  A child that the script forks has the pipe closed, and writes nothing.
    """
    if fd >= 0 and not faulthandler.is_enabled():
        faulthandler.enable(fd, all_threads=True)
