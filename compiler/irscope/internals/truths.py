"""Which way code decides by the value of a tensor: ``if x.sum() > 0:`` asks the tensor whether it is true."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo


def truth_hook(note: Callable[[str, int, bool], None]) -> Hook:
    """Calls ``note`` with the file and line that asked a tensor whether it is true, and the answer.

    For runs without compile: Dynamo looks at the method itself.
    """

    def apply(torch: types.ModuleType) -> Undo:
        kind: Any = torch.Tensor  # it inherits the method
        ask = kind.__bool__

        def asked(self: object) -> bool:
            answer: bool = ask(self)
            frame = next(callers())
            note(frame.f_code.co_filename, frame.f_lineno, answer)
            return answer

        kind.__bool__ = asked
        return lambda: delattr(kind, "__bool__")

    return Hook("which way code decides by a tensor", "torch", "2.9 to 2.13", apply)
