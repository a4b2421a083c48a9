"""``irscope view``: handed to the server's package, which this one does not know."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence

_PROGRAM = "irscope_server.view"


def view(args: Sequence[str]) -> int:
    """Runs the server of the web page in place of this process, where the system can do that."""
    missing = [name for name in ("irscope_server", "pygls", "lsprotocol") if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"irscope view: {sys.executable} has no {missing[0]}. Install all of irscope there: pip install irscope",
            file=sys.stderr,
        )
        return 3
    command = [sys.executable, "-m", _PROGRAM, *args]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(sys.executable, command)
    try:
        return subprocess.call(command)
    except KeyboardInterrupt:
        return 0
