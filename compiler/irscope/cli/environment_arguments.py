"""The arguments of ``irscope env``."""

from __future__ import annotations

import argparse

from irscope.cli.shared_arguments import add_python

DESCRIPTION = """\
Makes a virtual environment with the packages that a pipeline needs, in irscope's cache, so that your own environment
stays as it is.  What it does not have itself, such as the packages of your script, comes from the interpreter that it is made
from.  It says first what it will install, and goes on only after a yes.  If it was interrupted, the same command goes on.
From then on the pipeline runs there, wherever that interpreter would run it.

  irscope env create xla
  irscope run train.py --pipeline xla"""


def add_to(env: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    env.description = DESCRIPTION
    env.add_argument("action", choices=("create",), help="make an environment, or complete it")
    env.add_argument("pipeline", metavar="NAME", help="the pipeline; `irscope pipelines` lists them")
    env.add_argument("--yes", action="store_true", help="do not ask")
    env.add_argument("--folder", metavar="DIR", help="where to make it (default: in the cache of irscope)")
    add_python(env, "interpreter to make it from")
    env.set_defaults(do=("environments", "create"))
