"""``irscope completion``: the scripts that make a shell complete irscope's arguments.

`scripts/generate.py` writes them from the parser, with shtab, which irscope itself does not need.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from irscope.cli.text import to_stdout

SHELLS = ("bash", "zsh", "fish", "tcsh")
FOLDER = Path(__file__).parent / "completions"

_DESCRIPTION = """\
Prints the script that makes a shell complete irscope's commands, options and files with the Tab key.

  eval "$(irscope completion bash)"     in this shell; in ~/.bashrc: in every one
  eval "$(irscope completion zsh)"      the same for zsh, in ~/.zshrc after compinit
  irscope completion fish | source      in fish, in ~/.config/fish/config.fish
  irscope completion tcsh > ~/.irscope.tcsh     and `source ~/.irscope.tcsh` in ~/.tcshrc"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.description = _DESCRIPTION
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))
    parser.set_defaults(do=("completing", "completion"))


def completion(options: argparse.Namespace) -> int:
    """Prints the script of a shell."""
    path = FOLDER / f"irscope.{options.shell}"
    if not path.is_file():
        raise LookupError(f"{path} is missing. In a checkout of irscope: python scripts/generate.py")
    to_stdout(path.read_text("utf-8").splitlines())
    return 0
