"""The arguments of ``irscope tune``."""

from __future__ import annotations

import argparse

from irscope.cli.numbers import seconds
from irscope.cli.shared_arguments import add_cwd, add_python

DESCRIPTION = """\
Runs SCRIPT beside changed copies of it, in turns, and prints what pays: verified fixes, where and how torch.compile is
called, settings.  A step is what the script does from one call of its first compiled program to the next; the script has to
run some hundred of them.  What is faster by more than noise is checked: the same results and gradients as without compile.
Then the best combination is proven and measured again.  Your files stay as they are: the answer is a patch."""


def add_to(tune: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    tune.description = DESCRIPTION
    tune.add_argument("script", metavar="SCRIPT", help="the Python script")
    tune.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")
    tune.add_argument(
        "--budget", metavar="SECONDS", type=seconds, default=900.0,
        help="end after so many seconds, with what is known by then (default: %(default)g)",
    )  # fmt: skip
    tune.add_argument(
        "--only", metavar="NAME", action="append", default=[],
        help="try only the candidate of this name, as the table has it (dynamic=False; fixes); may be repeated",
    )  # fmt: skip
    add_python(tune)
    add_cwd(tune)
    tune.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    tune.set_defaults(do=("tuning", "tune"))
