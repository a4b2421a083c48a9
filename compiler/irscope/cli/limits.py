"""The flags for the limits of a run, from the table of limits (`irscope.vocabulary.limits`)."""

from __future__ import annotations

import argparse
import functools
import math

from irscope.vocabulary.limits import LIMITS, Budget, Unit


def add_flags(parser: argparse.ArgumentParser, command: str) -> None:
    """Adds the flag of each limit that the command has."""
    for name, row in LIMITS.items():
        if command in row.commands:
            amount = functools.partial(_amount, row.unit)
            parser.add_argument(row.flag, dest=_dest(name), metavar=row.unit.metavar, type=amount, help=row.help)


def budget_of_flags(options: argparse.Namespace) -> Budget:
    """The limits that were given; a command that lacks a limit's flag has no such limit."""
    return Budget(**{name: getattr(options, _dest(name), None) for name in LIMITS})


def _dest(name: str) -> str:
    return f"limit_{name}"


def _amount(unit: Unit, text: str) -> float | None:
    """The text as `Budget` has it.  Raises ArgumentTypeError."""
    try:
        value = float(text)
        if math.isnan(value) or (unit.whole and not text.isdecimal()):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(f"Invalid number of {unit.name}: {text!r}") from None
    if not unit.whole and not value > 0:
        raise argparse.ArgumentTypeError(f"the budget must be more than 0 {unit.name}")
    if value == math.inf and unit.scale != 1:
        raise argparse.ArgumentTypeError(f"Invalid number of {unit.name}: {text!r}")
    return unit.in_budget(value)
