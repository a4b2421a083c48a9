"""What PyTorch's compilers warn of through Python's ``warnings``."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers, is_in
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all

_AFTER_DYNAMO = ("torch/_inductor/", "torch/_functorch/_aot_autograd/")
_COMPILERS = ("torch/_dynamo/", *_AFTER_DYNAMO)
_OF_A_CACHE = "torch/_functorch/_aot_autograd/autograd_cache.py"
"""What a cache cannot hold has its own finding."""
_OF_AN_OPERATION = "(Triggered internally at "
"""In what ATen warns of.  It names the line of Python that called the operation, which may be a compiler's."""


def warnings_hook(attach: Callable[[], Undo], receive: Callable[[str, bool], None]) -> Hook:
    """Calls back with each warning that is shown and that a compiler of PyTorch's gives, on the stack on which it gives
    it: the text, and whether Dynamo is done.  The receiver must not raise.

    Filters stay as they are, so the same is printed.

    Args:
        attach: Listens to the compilers' logs.
    """

    def apply(_: types.ModuleType) -> Undo:
        module: Any = warnings
        shown = module._showwarnmsg  # Python calls it for a warning that the filters let through (3.10 to 3.13)

        @functools.wraps(shown)
        def show(message: warnings.WarningMessage) -> Any:
            for frame in callers():
                if frame.f_code.co_name != "warn_once":  # Dynamo's, which warns for others
                    break
            code, text = frame.f_code, str(message.message)
            is_compiler = any(is_in(code, folder) for folder in _COMPILERS) and not is_in(code, _OF_A_CACHE)
            if is_compiler and _OF_AN_OPERATION not in text:
                receive(text, any(is_in(code, folder) for folder in _AFTER_DYNAMO))
            return shown(message)

        return undo_all([replace_attribute(module, "_showwarnmsg", show), attach()])

    return Hook("what PyTorch's compilers warn of", "torch._dynamo", "2.9 to 2.13", apply)
