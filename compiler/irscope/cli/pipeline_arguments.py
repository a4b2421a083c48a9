"""The arguments of ``irscope pipelines``."""

from __future__ import annotations

from irscope.cli.shared_arguments import add_python
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
    add_python(pipelines, "interpreter in which they are tried")
    pipelines.set_defaults(do=("pipelining", "list_pipelines"))
