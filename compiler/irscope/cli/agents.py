"""``irscope mcp``: handed to the server's package, which this one does not know."""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import sys

from irscope.system.streams import complain

NEEDS = "mcp>=2.3,<2.4"
"""What the extra ``mcp`` of pyproject.toml asks for."""
_SERVER = "irscope_server.agents.serve"


def serve(options: argparse.Namespace) -> int:
    """Serves until standard input ends."""
    for name, what in (("irscope_server", "irscope"), ("mcp", NEEDS)):
        if importlib.util.find_spec(name) is None:
            complain(
                f"irscope mcp: {sys.executable} has no package {name}. "
                f"Install it there: {sys.executable} -m pip install '{what}'"
            )
            return 3
    gc.enable()  # `main` stops it for commands that end soon
    return int(importlib.import_module(_SERVER).serve(options.store, options.python, options.allow_run, options.traces))
