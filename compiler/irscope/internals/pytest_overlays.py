"""The hook that has pytest test the unsaved text of test files."""

from __future__ import annotations

import os
import types
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.source import overlay_of


def _read_overlays(rewrite: types.ModuleType) -> Undo:
    """pytest reads test files by itself, to rewrite their asserts, and keeps what it compiled on disk; the compiled
    file belongs to the text on disk, so for an overlaid one none is read or written."""
    from pathlib import Path

    class OverlaidPath(type(Path())):  # type: ignore[misc]  # what Path() makes on this system
        def read_bytes(self) -> bytes:
            return (overlay_of(str(self)) or "").encode("utf-8", "surrogatepass")

    module: Any = rewrite
    rewrite_test, read_pyc, write_pyc = module._rewrite_test, module._read_pyc, module._write_pyc

    def overlaid_test(fn: Any, config: Any) -> Any:
        return rewrite_test(OverlaidPath(fn) if overlay_of(str(fn)) is not None else fn, config)

    def overlaid_pyc(source: Any, *args: Any, **kwargs: Any) -> Any:
        return None if overlay_of(os.fspath(source)) is not None else read_pyc(source, *args, **kwargs)

    def no_overlaid_pyc(state: Any, co: types.CodeType, *args: Any, **kwargs: Any) -> Any:
        return False if overlay_of(co.co_filename) is not None else write_pyc(state, co, *args, **kwargs)

    return undo_all(
        [
            replace_attribute(rewrite, "_rewrite_test", overlaid_test),
            replace_attribute(rewrite, "_read_pyc", overlaid_pyc),
            replace_attribute(rewrite, "_write_pyc", no_overlaid_pyc),
        ]
    )


OVERLAYS = Hook(
    what="the unsaved text of test files: the texts on disk were tested",
    module="_pytest.assertion.rewrite",
    versions="2.13 (with pytest 9.0)",
    apply=_read_overlays,
)
