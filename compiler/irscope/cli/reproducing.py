"""``irscope repro``: the smallest script that shows a compile error, a wrong number or a slow kernel."""

from __future__ import annotations

import argparse
import os

from irscope.cli.shared_arguments import add_json_and_store, add_python, add_run, add_target
from irscope.cli.text import print_json, short_path, to_stdout
from irscope.driver.reproducing import reproduce, script_of_kernel, script_of_run
from irscope.protocol import to_json
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.system.trust import TrustError
from irscope.vocabulary.visible import printable

_OUTPUT = "repro.py"
DESCRIPTION = """\
Writes the smallest script that shows what a stored run has, and runs it in a fresh process: the graph of a compile error, made
smaller by PyTorch's minifier; the part of a graph that `irscope diverge` found to compute a wrong number; or one kernel with a
loop that times it, compared with what `irscope profile` measured.  The exit code is 0 if the script shows it, else 1.

  irscope run train.py; irscope repro -o repro.py
  irscope diverge train.py; irscope repro -o repro.py
  irscope profile train.py; irscope repro --kernel triton_poi_fused_gelu_1 -o repro.py"""


def add_to(repro: argparse.ArgumentParser) -> None:
    """Adds all arguments to a parser."""
    repro.description = DESCRIPTION
    add_json_and_store(repro)
    add_run(repro)
    add_target(repro)
    repro.add_argument("--compile", metavar="ID", help="only of this compile, as in 0/0")
    repro.add_argument("--kernel", metavar="NAME", help="a slow kernel, or the ID of its stage")
    repro.add_argument(
        "-o", "--output", metavar="FILE", help=f"the file to write (default: {_OUTPUT}, if there is none)"
    )
    repro.add_argument("--trust", metavar="DIGEST", default="", help="run the script of another store or an opened trace: the SHA-256 of its text, or the first 12 digits")  # fmt: skip
    add_python(repro)
    repro.set_defaults(do=("reproducing", "repro"))


def repro(options: argparse.Namespace) -> int:
    """Writes and runs the script; 1 if it does not show it.  Raises LookupError for a run that has nothing to show."""
    if options.output is None and os.path.lexists(_OUTPUT):
        complain(f"irscope: {_OUTPUT} is there already. Name the file to write with -o: it is replaced.")
        return 3
    with Store(options.store) as store:
        report = store.report(store.find_run(options.run))
        report = report.of_target(options.target) if options.target else report
        if options.kernel:
            script = script_of_kernel(store, report, options.kernel, options.compile)
        else:
            script = script_of_run(store, report, options.compile)
        path = os.path.abspath(options.output or _OUTPUT)
        try:
            found = reproduce(script, path, store, report, options.python, os.environ, options.trust)
        except TrustError as error:
            complain(f"irscope: {printable(str(error))}")
            return 3
    if options.json:
        print_json({"run": report.run, **to_json(found)})
    else:
        to_stdout([printable(line) for line in f"{short_path(found.path)}: {found.message}".split("\n")])
    return int(not found.shown)
