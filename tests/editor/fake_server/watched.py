"""The real server, with each callback of its event loop that works longer than a frame may noted in a file.

``IRSCOPE_TEST_PAUSES`` names the file.  What counts is the processor time of the loop's own thread: that a machine
busy with a compile lets the server wait for its turn is nobody's fault here.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import time
from asyncio import events
from pathlib import Path
from typing import Any

FRAME = 0.1

_run = events.Handle._run
_main = threading.get_ident()


def _watched(self: events.Handle) -> None:
    began = time.thread_time()
    _run(self)
    took = time.thread_time() - began
    if took > FRAME and threading.get_ident() == _main:
        with open(os.environ["IRSCOPE_TEST_PAUSES"], "a", encoding="utf-8") as file:
            file.write(f"{took * 1000:.0f} ms in {repr(self)[:300]}\n")


handle: Any = events.Handle
handle._run = _watched
launcher = Path(__file__).parents[3] / "extension" / "launch_server.py"
sys.argv[0] = str(launcher)
with open(os.environ["IRSCOPE_TEST_PAUSES"], "a", encoding="utf-8") as file:
    file.write("watching\n")
runpy.run_path(str(launcher), run_name="__main__")
