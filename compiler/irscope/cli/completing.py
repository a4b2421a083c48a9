"""``irscope completion``: the scripts that make a shell complete irscope's arguments.

`scripts/generate.py` writes them from the parser, with shtab, which irscope itself does not need.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from irscope.cli.text import to_stdout

SHELLS = ("bash", "zsh", "fish", "tcsh")
FOLDER = Path(__file__).parent / "completions"


def completion(options: argparse.Namespace) -> int:
    """Prints the script of a shell."""
    path = FOLDER / f"irscope.{options.shell}"
    if not path.is_file():
        raise LookupError(f"{path} is missing. In a checkout of irscope: python scripts/generate.py")
    to_stdout(path.read_text("utf-8").splitlines())
    return 0
