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

    Parameters
    ----------
    function
        The name of the code object.
    qualified
        The name of the function with its classes, if it is known.
    """
    match = _RESUMED.match(function)
    name = qualified or plain_name(function)
    return f"{name}, after line {match['line']}" if match else name
