"""``irscope mcp``: handed to the server's package, which this one does not know."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys

from irscope.system.streams import complain
from irscope.vocabulary.agent_options import as_words

_PROGRAM = "irscope_server.agents"


def serve(options: argparse.Namespace) -> int:
    """Runs the server in place of this process, where the system can do that."""
    for name, what in (("irscope_server", "irscope"), ("mcp", "irscope[mcp]")):
        if importlib.util.find_spec(name) is None:
            complain(
                f"irscope mcp: {sys.executable} has no package {name}. "
                f"Install it there: {sys.executable} -m pip install '{what}'"
            )
            return 3
    command = [sys.executable, "-m", _PROGRAM, *as_words(options)]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(sys.executable, command)
    try:
        return subprocess.call(command)
    except KeyboardInterrupt:
        return 0
