"""What `torch.save` writes: in C++, where nothing that Python sees says so."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo


def hook(before: Callable[[Any], None]) -> Hook:
    """Calls ``before`` with the path of each file that `torch.save` is about to write."""

    def apply(serialization: types.ModuleType) -> Undo:
        name: Any = "_open_zipfile_writer"
        original = getattr(serialization, name)

        def opened(name_or_buffer: Any) -> Any:
            if isinstance(name_or_buffer, (str, os.PathLike)):
                before(name_or_buffer)
            return original(name_or_buffer)

        setattr(serialization, name, opened)
        return lambda: setattr(serialization, name, original)

    return Hook("files that torch.save writes", "torch.serialization", "2.9 to 2.13", apply)
