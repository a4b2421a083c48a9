"""The arguments of ``irscope check``."""

from __future__ import annotations

import argparse
import math

from irscope.cli import run_arguments
from irscope.cli.check_formats import FORMATS
from irscope.cli.shared_arguments import add_store
from irscope.findings.verdicts import BOUNDS, DEFAULT_FAIL_ON, NONE, Bound, read_fail_on

DESCRIPTION = """\
Runs each SCRIPT under capture, one after the other, and fails if one has a finding that it must not have or a number over
its bound: for CI, a pre-commit hook, or before a push (docs/ci.md).

exit codes:
  0   all scripts are clean
  1   a finding that fails, or a number over its bound
  2   wrong usage, or no such file
  3   the environment cannot run a script (no torch, torch too old), or a file or the store cannot be used
  4   a script failed, crashed, or was stopped by a limit: nobody knows whether it is clean

Without --lane the fast lane is used, unless a bound or a kind of finding is only known in the deep one.
With --output the result goes to a file and the text for people to standard output."""


def add_to(check: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    check.description = DESCRIPTION
    check.add_argument("scripts", metavar="SCRIPT", nargs="+", help="Python scripts, or notebooks (.ipynb)")
    check.add_argument(
        "--fail-on", metavar="NAMES", type=_fail_on, default=DEFAULT_FAIL_ON,
        help="kinds of findings (graph-break), codes (GB0059) or severities (warning: that or worse), with commas between; "
        f"{NONE}: only bounds count (default: {','.join(DEFAULT_FAIL_ON)})",
    )  # fmt: skip
    for bound in BOUNDS.values():
        check.add_argument(
            bound.flag, metavar="N" if bound.is_whole else "SECONDS", type=_limit_of(bound),
            help=f"at most so many {bound.help}" if bound.is_whole else f"at most so many {bound.help} (deep lane)",
        )  # fmt: skip
    check.add_argument(
        "--format",
        metavar="FORMAT",
        choices=[*FORMATS],
        default="text",
        help="; ".join(map(": ".join, FORMATS.items())),
    )
    check.add_argument("-o", "--output", metavar="FILE", help="write the result to this file")
    check.add_argument("--lane", choices=["fast", "deep"], help="how much of the pipeline to capture")
    check.add_argument("args", metavar="ARGS", nargs="*", help="arguments of each script, after --")
    run_arguments.add_shared(check)
    add_store(check)
    check.set_defaults(do=("checking", "check"))


def limits_of(options: argparse.Namespace) -> dict[str, float]:
    """The bounds that were given, by name."""
    return {name: value for name in BOUNDS if (value := getattr(options, name)) is not None}


def _fail_on(text: str) -> tuple[str, ...]:
    try:
        return read_fail_on(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _limit_of(bound: Bound) -> type[float]:
    def limit(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or (bound.is_whole and not text.isdecimal()):
            raise argparse.ArgumentTypeError(f"Invalid number: {text!r} (0 or more)")
        return value

    return limit  # type: ignore[return-value]
