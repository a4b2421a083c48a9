"""The argument parser of irscope's commands: errors that name what was meant, help that fits the terminal."""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

_WIDEST = 120


class Help(argparse.RawDescriptionHelpFormatter):
    """Paragraphs of a description are filled; lines that are indented stay lines, with a break before their comment if
    they are too long."""

    def __init__(self, prog: str, **options: Any) -> None:
        options.setdefault("width", max(40, min(shutil.get_terminal_size().columns, _WIDEST) - 2))
        super().__init__(prog, **options)

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # the seam that all formatters of argparse use
        return "\n".join(indent + line for line in filled(text, width - len(indent)))


def filled(text: str, width: int) -> list[str]:
    """The lines of a description in this width."""
    lines: list[str] = []
    for indented, group in itertools.groupby(text.split("\n"), key=lambda line: line.startswith(" ") or not line):
        block = list(group)
        if indented:
            fold = any(len(line) > width for line in block)
            lines += [part for line in block for part in _kept(line, width, fold)]
        else:
            lines += textwrap.wrap(" ".join(block), width, break_long_words=False, break_on_hyphens=False)
    return lines


_COMMENTED = re.compile(r"(\s+)(\S+(?: \S+)*)\s{2,}(\S.*)")
"""A command and what it does."""
_CODE = re.compile(r"\s+\d+ +")


def _kept(line: str, width: int, fold: bool) -> list[str]:
    """A line that is not filled; in a block with one that is too long each comment goes below its command."""
    if fold and (code := _CODE.match(line)):
        return textwrap.wrap(line, width, subsequent_indent=" " * code.end())
    if fold and (match := _COMMENTED.fullmatch(line)):
        indent, command, comment = match.groups()
        inner = indent + "    "
        return [indent + command, *textwrap.wrap(comment, width, initial_indent=inner, subsequent_indent=inner)]
    return [line]


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors do not depend on the version of Python, and name the nearest option."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        super().__init__(**options)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options that were given.  Raises SystemExit(2) for wrong usage, also for what argparse would pass on."""
        self.refuse_unknown(arguments)
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            self.error(f"unexpected: {' '.join(unknown)}")
        return options

    def refuse_unknown(self, arguments: Sequence[str], hint: str = "") -> None:
        """Ends with an error at an option that does not exist, even if something else is missing, too."""
        known = self._option_string_actions
        for argument in arguments:
            name = argument.partition("=")[0]
            if not name.startswith("--") or " " in name or any(option.startswith(name) for option in known):
                continue
            from irscope.vocabulary.suggestions import did_you_mean  # here: it is for errors, and delays the others

            near = did_you_mean(name, [option for option in known if option.startswith("--")])
            self.error(f"unknown option: {name}.{near}{hint}")

    def error(self, message: str) -> NoReturn:
        """Exits with 2.  The usage of a command with twenty options would hide the message."""
        self.exit(2, f"{self.prog}: error: {message}\n`{self.prog} --help` shows what it takes.\n")
