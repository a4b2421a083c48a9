"""The arguments of ``irscope mcp``."""

from __future__ import annotations

import os
import sys

from irscope.cli.shared_arguments import add_store
from irscope.vocabulary.command_line import Parser

DESCRIPTION = """\
Serves the Model Context Protocol on standard input and output, so that an agent can ask what torch.compile did: findings,
what a line became, why kernels were not fused, stages, differences (docs/agents.md).  The client starts this command.

It needs the package mcp: pip install 'irscope[mcp]'.  Without --allow-run nothing is run: the tools read stored runs, and open traces that lie
below the working folder."""


def add_options(command: Parser) -> None:
    """Adds all of them to a parser."""
    command.description = DESCRIPTION
    command.add_argument(
        "--allow-run", action="store_true",
        help="let the client run scripts, apply fixes and start compilers; without it stored runs and traces of this folder can be read",
    )  # fmt: skip
    command.add_argument(
        "--traces", metavar="DIR", action="append", default=[],
        help="without --allow-run: a folder whose traces the client may open, beside the working folder; may be repeated",
    )  # fmt: skip
    add_store(command)
    command.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter that runs scripts (default: %(default)s; variable IRSCOPE_PYTHON)",
    )  # fmt: skip
    command.set_defaults(do=("agents", "serve"))
