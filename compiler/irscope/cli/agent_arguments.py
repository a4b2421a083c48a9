"""The arguments of ``irscope mcp``."""

from __future__ import annotations

from irscope.cli.shared_arguments import add_python, add_store
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
    add_python(command, "interpreter that runs scripts")
    command.set_defaults(do=("agents", "serve"))
