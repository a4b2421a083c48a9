"""Lets the editor's unsaved text stand in for files, without writing to them."""

from __future__ import annotations

import importlib.machinery
import os
from typing import Any

from irscope.usercode import source


def install_overlays(overlays: dict[str, str]) -> None:
    """From now on an import of one of these files, and every traceback, sees the given text.

    Compiled files on disk belong to the text on disk, so for an overlaid file none is read or written: its loader
    says that it knows no modification time.
    """
    source.use_overlays(overlays)
    if not overlays:
        return
    loader: Any = importlib.machinery.SourceFileLoader
    get_data, path_stats = loader.get_data, loader.path_stats

    def overlaid_data(self: Any, path: str) -> bytes:
        text = source.overlay_of(path)
        return get_data(self, path) if text is None else text.encode("utf-8", "surrogatepass")

    def overlaid_stats(self: Any, path: str) -> dict[str, Any]:
        if source.overlay_of(path) is not None:
            raise OSError("an unsaved text has no modification time")
        return path_stats(self, path)  # type: ignore[no-any-return]

    loader.get_data, loader.path_stats = overlaid_data, overlaid_stats
    for path, text in overlays.items():
        show_in_tracebacks(path, text)
        show_in_tracebacks(os.path.realpath(path), text)


def show_in_tracebacks(path: str, text: str) -> None:
    """A line cache entry without a modification time is never checked against the disk."""
    import linecache

    lines = [f"{line}\n" for line in text.split("\n")]  # `str.splitlines` also splits at form feeds and at U+2028
    linecache.cache[path] = (len(text), None, lines, path)
