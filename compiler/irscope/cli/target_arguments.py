"""The arguments of ``irscope targets`` and ``irscope verify-target``."""

from __future__ import annotations

import argparse

from irscope.cli.shared_arguments import add_json_and_store, add_python

_TARGETS = """\
Lists the devices whose bounds `irscope show --costs --target` gives: what each is, and what it can do at most.  Every
figure has its source.  The file that the variable IRSCOPE_TARGETS names adds targets of your own (docs/targets.md)."""

_VERIFY = """\
Runs SCRIPT on the GPU of this machine, and compares Triton's kernels and their PTX with what was predicted for it: by
`irscope run SCRIPT --target TARGET` on another machine, whose run store --predicted names, else in a second run here.
With --json it prints a certificate.  Exits with 1 if there are differences."""


def add_targets(command: argparse.ArgumentParser) -> None:
    """Adds those of ``irscope targets``."""
    command.description = _TARGETS
    command.add_argument("target", metavar="TARGET", nargs="?", help="only this one, with the source of each figure")
    command.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    command.set_defaults(do=("targeting", "list_targets"))


def add_verify(command: argparse.ArgumentParser) -> None:
    """Adds those of ``irscope verify-target``."""
    command.description = _VERIFY
    add_json_and_store(command)
    command.add_argument("target", metavar="TARGET", help="the name of the device of this machine (irscope targets)")
    command.add_argument("script", metavar="SCRIPT", help="a script that uses the GPU")
    command.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")
    command.add_argument(
        "--predicted", metavar="FILE", help="run store with the prediction, carried over from elsewhere"
    )
    command.add_argument(
        "--untuned", action="store_true",
        help="predict what is chosen by timing, too, instead of taking it from the real run (without --predicted)",
    )  # fmt: skip
    add_python(command)
    command.set_defaults(do=("verifying", "verify"), module=None, pytest=None, model=None)
