"""What most fixes need beside irscope: LibCST, which has binary wheels and so is not part of the extension."""

from __future__ import annotations

import importlib.util
import sys

NEEDS = "libcst>=1.8.2,<2"
"""What the extra ``fix`` of pyproject.toml asks for."""


def is_missing() -> bool:
    """Whether LibCST cannot be imported by this interpreter."""
    return importlib.util.find_spec("libcst") is None


def install_command(python: str = sys.executable) -> str:
    """The command that installs it for an interpreter; quoted for the shells of all systems."""
    name = f'"{python}"' if " " in python else python
    return f'{name} -m pip install "{NEEDS}"'
