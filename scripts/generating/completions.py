"""The scripts that make a shell complete irscope's arguments: `irscope completion` prints them."""

from __future__ import annotations

import argparse
import re

import shtab
from irscope.cli.arguments import parsers
from irscope.cli.completing import SHELLS
from irscope_server.view.__main__ import parser as parser_of_view

FOLDER = "compiler/irscope/cli/completions"
_FILES = {"ARGS", "FILE", "SCRIPT", "PATH", "NODE", "FILE:LINE", "FILE[:LINE]"}
_DEFAULT = re.compile(r" \(default: %\(default\)s[^)]*\)")
"""Defaults are those of the machine that generates: folders of its user."""


def scripts() -> dict[str, str]:
    """The script of each shell by the path of its file."""
    top, _ = parsers()
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            action._name_parser_map["view"] = parser_of_view()
            words = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action._name_parser_map.items():
                command.description = words[name]  # zsh shows it beside the name
                _prepare(command)
    return {f"{FOLDER}/irscope.{shell}": _clean(shtab.complete(top, shell)) for shell in SHELLS}


def _prepare(parser: argparse.ArgumentParser) -> None:
    """Says what is a file, and leaves out what only holds on the machine that generates."""
    for action in parser._actions:
        if action.help and action.help is not argparse.SUPPRESS:
            action.help = _DEFAULT.sub("", action.help)
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]


def _clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"
