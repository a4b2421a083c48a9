"""SIGTERM ends the server, also where its main thread is inside of a call that takes long."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time
from irscope_server.app.serve import on_end_signals

on_end_signals(lambda: print("asked", flush=True), 0.5)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_busy_server_ends(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=30)[0] == "asked\n"
    assert process.returncode == 1
