"""Keeps Dynamo from compiling irscope's own functions.

While compiled autograd runs, Dynamo looks at every function that Python enters, and what handles PyTorch's events is
called in the middle of it.  Without this those of our functions that are given a tensor or a module are compiled like
the script's own: compiles that are not of the script, and other numbers for those that are.
"""

from __future__ import annotations

import os
import types
from typing import Any

from irscope.internals.hooks import Hook, Undo

_HOME = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "").replace("\\", "/")


def hook() -> Hook:
    """Puts irscope among the folders that Dynamo skips."""

    def apply(trace_rules: types.ModuleType) -> Undo:
        folders: Any = trace_rules.SKIP_DIRS
        read_again: Any = trace_rules._recompile_re
        folders.append(_HOME)
        read_again()

        def undo() -> None:
            folders.remove(_HOME)
            read_again()

        return undo

    return Hook("hiding irscope's own compiles: some may be listed", "torch._dynamo.trace_rules",
                "2.9 to 2.15", apply)  # fmt: skip
