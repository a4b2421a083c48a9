"""The arguments of ``irscope fix``."""

from __future__ import annotations

import argparse

from irscope.cli.numbers import seconds
from irscope.cli.shared_arguments import add_cwd, add_python

DESCRIPTION = """\
Runs SCRIPT and tries each fix of its findings before it is shown: the changed text runs beside the original one, and a
fix is *verified* if the finding is gone, no other has come, and the compiled programs give the same results and gradients
as the original without compile, on the run's inputs and on others.  Your files stay as they are without --apply."""


def add_to(fix: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    fix.description = DESCRIPTION
    fix.add_argument("script", metavar="SCRIPT", help="the Python script")
    fix.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")
    fix.add_argument("--apply", action="store_true", help="write the verified fixes into the files")
    fix.add_argument(
        "--only", metavar="CODE", action="append", default=[],
        help="only findings of this code (GB0059) or kind (graph-break); may be repeated",
    )  # fmt: skip
    fix.add_argument(
        "--seconds", metavar="N", type=seconds, default=300.0,
        help="begin no other trial after so many seconds (default: %(default)g)",
    )  # fmt: skip
    fix.add_argument(
        "--patches", metavar="DIR",
        help="write a patch file with a text for the pull request for each break in an installed library that a change of it removes",
    )  # fmt: skip
    fix.add_argument(
        "--measure", action="store_true",
        help="run the script through the whole pipeline with and without the verified fixes, and time both in turns; where sizes are dynamic, also with static ones",
    )  # fmt: skip
    add_python(fix)
    add_cwd(fix)
    fix.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    fix.set_defaults(do=("fixing", "fix"))
