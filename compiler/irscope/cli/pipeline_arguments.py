"""The arguments of ``irscope pipelines``."""

from __future__ import annotations

import os
import sys

from irscope.vocabulary.command_line import Parser

DESCRIPTION = """\
Lists the ways from a PyTorch program to machine code that irscope knows.  Each is tried: it compiles something small in a
separate process, and is available only if that works.  A trial that succeeded is repeated when Python, a package or the
trial has changed, or with --again."""


def add_to(pipelines: Parser) -> None:
    """Adds all of them to a parser."""
    pipelines.description = DESCRIPTION
    pipelines.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    pipelines.add_argument("--again", action="store_true", help="repeat the trials that succeeded before")
    pipelines.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter in which they are tried (default: %(default)s; variable IRSCOPE_PYTHON)",
    )  # fmt: skip
    pipelines.set_defaults(do=("pipelining", "list_pipelines"))
