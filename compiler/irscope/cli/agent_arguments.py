"""The command ``irscope mcp`` and its arguments."""

from __future__ import annotations

from irscope.store.store import default_path
from irscope.vocabulary.agent_options import add_to
from irscope.vocabulary.command_line import Parser

DESCRIPTION = """\
Serves the Model Context Protocol on standard input and output, so that an agent can ask what torch.compile did: findings,
what a line became, why kernels were not fused, stages, differences (docs/agents.md).  The client starts this command.

It needs the package mcp: pip install 'irscope[mcp]'.  Without --allow-run nothing is run: the tools read stored runs."""


def add_options(command: Parser) -> None:
    """Adds all of them to a parser."""
    add_to(command, default_path())
    command.set_defaults(do=("agents", "serve"))
