"""Signals end the server, whatever it is doing."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable

PATIENCE_SECONDS = 5.0
"""For an orderly end; what is still running then is stopped by its own watcher, as after a crash."""


def on_end_signals(end: Callable[[], object], patience: float = PATIENCE_SECONDS) -> None:
    """Calls ``end`` from a separate thread when SIGTERM, SIGINT or SIGHUP arrives; ends the process where that does not.

    A handler in Python runs between two instructions of the main thread, so never while that is inside of a call that
    takes long.  The signal's number is written into a pipe at once (`signal.set_wakeup_fd`).  Call it from the main thread.
    """
    if os.name != "posix":  # the wakeup descriptor must be a socket there
        return
    numbers = {signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        with contextlib.suppress(ValueError, OSError):
            signal.signal(number, lambda *_: None)

    def wait() -> None:
        while (told := os.read(reading, 1)) and told[0] not in numbers:
            pass
        with contextlib.suppress(RuntimeError):  # the loop is closed
            end()
        time.sleep(patience)
        os._exit(1)

    threading.Thread(target=wait, name="irscope-end", daemon=True).start()
