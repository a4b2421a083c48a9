"""The options of ``irscope mcp``, which the command line declares and the server's package reads."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def add_to(parser: argparse.ArgumentParser, store: str) -> None:
    """Adds all of them.

    Parameters
    ----------
    store
        The file of runs, if no option names one.
    """
    parser.add_argument(
        "--allow-run", action="store_true",
        help="let the client run scripts, apply fixes and start compilers; without it stored runs can be read",
    )  # fmt: skip
    parser.add_argument(
        "--store", metavar="FILE", default=store, help="file of the run store (default: %(default)s; IRSCOPE_STORE)"
    )
    parser.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter that runs scripts (default: %(default)s; variable IRSCOPE_PYTHON)",
    )  # fmt: skip


def as_words(options: argparse.Namespace) -> Sequence[str]:
    """The options as arguments of another process."""
    allowed = ["--allow-run"] if options.allow_run else []
    return [*allowed, f"--store={options.store}", f"--python={options.python}"]
