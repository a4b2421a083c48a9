"""Reading the command line of ``irscope``: only the parser of the command that is asked for is made."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping, Sequence

from irscope.cli.commands import COMMANDS, RUNS
from irscope.vocabulary.command_line import Parser

_PROGRAM = "irscope"


def parser() -> Parser:
    """The parser of the whole command line; each subcommand sets ``do``: the module and the function that carry it out,
    imported when it is called for, since none needs what the others do."""
    return parsers()[0]


def parsers() -> tuple[Parser, Mapping[str, Parser]]:
    """The parser of the whole command line, and those of its commands."""
    top = _program()
    added = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    made = {}
    for name, command in COMMANDS.items():
        made[name] = added.add_parser(name, help=command.help, add_help=bool(command.adder))
        _fill(made[name], name)
    return top, made


def parser_of(name: str) -> Parser:
    """The parser of one command, which is in `COMMANDS`."""
    made = Parser(prog=f"{_PROGRAM} {name}", add_help=bool(COMMANDS[name].adder))
    _fill(made, name)
    made.set_defaults(command=name)
    return made


def read(given: Sequence[str]) -> argparse.Namespace:
    """The options of a command line.  Raises SystemExit(2) for wrong usage."""
    arguments, rest = _split(given)
    if not arguments or arguments[0].startswith("-"):
        return _without_command(arguments)
    name, *own = arguments
    if name not in COMMANDS:
        from irscope.vocabulary.suggestions import did_you_mean

        near = did_you_mean(name, COMMANDS) or f" The commands are: {', '.join(COMMANDS)}."
        _program().error(f"unknown command: {name}.{near}")
    command = parser_of(name)
    has_script = COMMANDS[name].runs_script
    hint = " What belongs to the script comes after --: irscope run SCRIPT -- --its-option." if has_script else ""
    command.refuse_unknown(own, hint)
    options, unknown = command.parse_known_args(own)
    if unknown:
        command.error(f"unexpected: {' '.join(unknown)}.{hint}")
    options.given = list(given[1:])
    if rest is not None:
        if not has_script:
            command.error(f"only `irscope {'`, `'.join(RUNS[:-1])}` and `{RUNS[-1]}` take arguments after --")
        options.args = [*options.args, *rest]
    if has_script and "module" in options:
        from irscope.cli.entry_arguments import settle

        settle(command, options)
    return options


def _program() -> Parser:
    from irscope import __version__
    from irscope.cli.overview import DESCRIPTION, EXAMPLES

    top = Parser(prog=_PROGRAM, description=DESCRIPTION, epilog=EXAMPLES)
    top.add_argument("--version", action="version", version=f"{_PROGRAM} {__version__}")
    return top


def _fill(made: Parser, name: str) -> None:
    if adder := COMMANDS[name].adder:
        module, _, function = adder.partition(":")
        getattr(importlib.import_module(f"irscope.cli.{module}"), function)(made)


def _without_command(arguments: list[str]) -> argparse.Namespace:
    """``--help``, ``--version``, or an error."""
    top, _ = parsers()
    before = next((at for at, each in enumerate(arguments) if not each.startswith("-")), len(arguments))
    top.refuse_unknown(arguments[:before], " Options of a command come after it: irscope list --json.")
    return top.read(arguments)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What is after the first ``--`` belongs to the script, options included."""
    given = list(arguments)
    if "--" not in given:
        return given, None
    at = given.index("--")
    return given[:at], given[at + 1 :]
