"""The arguments of ``irscope compare``."""

from __future__ import annotations

import argparse

from irscope.cli import entry_arguments
from irscope.cli.numbers import whole_number
from irscope.cli.shared_arguments import add_cwd, add_json_and_store, add_python
from irscope.vocabulary.lanes import DEFAULT_ROUNDS

DESCRIPTION = """\
Runs a script, or the model of --model, through several pipelines and prints side by side what each made of it: operators,
kernels, bytes moved, compile time, time of a call, and the largest difference to eager.  Each pipeline has its own
process.  They run the script one after the other, and are then timed in turns with the inputs of the first call of each compiled
program.  What a pipeline does not tell has no number, and the reason."""


def add_to(compare: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    compare.description = DESCRIPTION
    add_json_and_store(compare)
    entry_arguments.add_to(compare)
    compare.add_argument(
        "--pipelines", metavar="NAMES", required=True,
        help="names with commas between them, as in inductor,torchscript; `irscope pipelines` lists them",
    )  # fmt: skip
    compare.add_argument(
        "--rounds",
        metavar="N",
        type=whole_number("rounds", 1, 10_000),
        default=DEFAULT_ROUNDS,
        help="rounds of timings (default: %(default)s)",
    )
    compare.add_argument("--output", action="store_true", help="show what the script prints, on stderr")
    add_python(compare)
    add_cwd(compare)
    compare.set_defaults(do=("comparing", "compare"))
