"""What is at the beginning of a run: a script, a module, tests or a model, and the arguments after ``--``."""

from __future__ import annotations

import argparse

from irscope.vocabulary.command_line import Parser


def add_to(command: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    command.add_argument("script", metavar="SCRIPT", nargs="?", help="the Python script, or a notebook (.ipynb)")
    command.add_argument(
        "-m", dest="module", metavar="MODULE", help="run a module or package instead, by its dotted name"
    )
    command.add_argument("--pytest", metavar="NODE", help="run tests instead: a file, or one test as FILE::NAME")
    command.add_argument(
        "--model", metavar="FILE:EXPR",
        help="compile and call a model instead: what the Python expression gives in the namespace of the file",
    )  # fmt: skip
    command.add_argument(
        "--inputs", metavar="FILE:EXPR",
        help="with --model: what to call it with; a tuple or list by position, a dict by name",
    )  # fmt: skip
    command.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")


def settle(command: Parser, options: argparse.Namespace) -> None:
    """One of SCRIPT, -m, --pytest and --model; beside the other three a word without a dash is an argument."""
    named = [option for option in (options.module, options.pytest, options.model) if option is not None]
    if not named and options.script is None:
        command.error(
            "the following arguments are required: SCRIPT (or -m MODULE, or --pytest NODE, or --model FILE:EXPR)"
        )
    if len(named) > 1:
        entries = {"-m": options.module, "--pytest": options.pytest, "--model": options.model}
        *first, last = [option for option, given in entries.items() if given is not None]
        command.error(f"{', '.join(first)} and {last}: use only one of them")
    if options.command in ("run", "compare", "profile") and (options.model is None) != (options.inputs is None):
        command.error("--model FILE:EXPR and --inputs FILE:EXPR belong together")
    if named and options.script is not None:
        options.args.insert(0, options.script)
        options.script = None
