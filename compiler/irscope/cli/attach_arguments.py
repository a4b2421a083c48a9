"""The arguments of ``irscope attach``."""

from __future__ import annotations

from irscope.cli.shared_arguments import add_json_and_store
from irscope.vocabulary.command_line import Parser

_DESCRIPTION = """\
Says what each process of a job does now, without stopping it: the user's line, what it compiles, the collective that it
waits in, and which ranks are missing there.

WHAT is the number of a process (of a launcher, of `irscope run`, or of one rank), or the folder of the run store in which
`irscope run` keeps the job.  Without it: the newest job of --store.

Ranks that `irscope run` has started answer by themselves.  py-spy reads the stacks of others, and their collectives are
known only by the function that they are in."""


def add_to(attach: Parser) -> None:
    """Adds all of them to a parser."""
    attach.description = _DESCRIPTION
    attach.add_argument("what", metavar="WHAT", nargs="?", default="", help="PID, or the folder of a run store")
    add_json_and_store(attach)
    attach.set_defaults(do=("attaching", "attach"))
