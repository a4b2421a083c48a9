"""`irscope view` ends with a signal, whichever of its threads the system gives it to."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals to threads")

SCRIPT = """\
import signal
import threading
from irscope_server.view.__main__ import wait_for_signal

def elsewhere():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, elsewhere).start()
try:
    wait_for_signal()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_to_another_thread_wakes_the_main_one() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
