"""The arguments that ``irscope run`` and ``irscope check`` share."""

from __future__ import annotations

import argparse
import os
import sys

from irscope.cli import limits
from irscope.protocol import DEFAULT_PIPELINE
from irscope.store.store import default_path
from irscope.vocabulary.severity_option import severity_option


def add_to(run: argparse.ArgumentParser) -> None:
    """Adds all of them but the store to a parser."""
    limits.add_flags(run, "run")
    run.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter that runs the script; it needs only torch 2.9 or newer (default: %(default)s; variable IRSCOPE_PYTHON)",
    )  # fmt: skip
    run.add_argument("--baseline", metavar="FILE", help="hide the findings in this baseline file")
    run.add_argument("--write-baseline", metavar="FILE", help="write the findings to this baseline file")
    run.add_argument(
        "--severity", metavar="CODE=LEVEL", action="append", type=severity_option, default=[],
        help="error, warning, information, hint or off for a code (GB0059) or a kind (recompilation); may be repeated",
    )  # fmt: skip
    run.add_argument("--cwd", metavar="DIR", help="working folder of the script (default: the current one)")
    run.add_argument(
        "--pipeline", metavar="NAME", default=DEFAULT_PIPELINE,
        help="the compiler that the programs go through (default: %(default)s); `irscope pipelines` lists them",
    )  # fmt: skip


def add_store(command: argparse.ArgumentParser) -> None:
    """Adds where runs are kept."""
    command.add_argument(
        "--store",
        metavar="FILE",
        default=default_path(),
        help="file of the run store (default: %(default)s; variable IRSCOPE_STORE)",
    )
