"""Names of functions as people know them: ``Block.forward``, and ``Block.forward, after line 94`` for a resume function.

PyTorch names code objects: a resume function, which goes on after a graph break, is
``torch_dynamo_resume_in_forward_at_94``.  Everything that shows the name of a function takes it from here.
"""

from __future__ import annotations

import re

RESUME_PREFIX = "torch_dynamo_resume_in_"
_RESUMED = re.compile(rf"^{RESUME_PREFIX}(?P<name>.+)_at_(?P<line>\d+)$", re.DOTALL)


def plain_name(function: str) -> str:
    """``torch_dynamo_resume_in_forward_at_8`` is ``forward`` to the user."""
    while match := _RESUMED.match(function):
        function = match["name"]
    return function


def qualified_name(qualname: str) -> str:
    """Python's ``__qualname__`` as people write it: ``main.<locals>.step`` is ``main.step``."""
    return qualname.replace(".<locals>", "")


def function_title(function: str, qualified: str = "") -> str:
    """The name to show for a code object; of a resume function also the line that it goes on from.

    Args:
        function: The name of the code object.
        qualified: The name of the function with its classes, if it is known.
    """
    name, line = qualified or plain_name(function), resumed_line(function)
    return name if line is None else resumed_title(name, line)


def resumed_line(function: str) -> int | None:
    """The line that a resume function goes on from; None for another function."""
    match = _RESUMED.match(function)
    return int(match["line"]) if match else None


def resumed_title(name: str, line: int) -> str:
    """The name to show for what goes on after a line of a function."""
    return f"{name}, after line {line}"
