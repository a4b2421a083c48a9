"""The page's scripts and styles: built from extension/src, packed with the extension and with the Python package."""

from __future__ import annotations

import os

PANELS = ("graph", "strip", "findings", "time", "measured", "memory", "changes", "comparison")

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_FILES = ("view.js", "view.css", "theme.css", *(f"{name}.{end}" for name in PANELS for end in ("js", "css")))


def folder() -> str | None:
    """Where they lie; None if they were not built."""
    here = os.path.dirname(os.path.abspath(__file__))
    for candidate in (
        os.path.join(here, "static"),  # installed by pip
        os.path.normpath(os.path.join(here, *[os.pardir] * 4, "dist")),  # the packed extension
        os.path.normpath(os.path.join(here, *[os.pardir] * 3, "extension", "dist")),  # a checkout
    ):
        if os.path.isfile(os.path.join(candidate, "view.js")):
            return candidate
    return None


def panels() -> tuple[str, ...]:
    """Those that were built."""
    found = folder() or ""
    return tuple(name for name in PANELS if os.path.isfile(os.path.join(found, f"{name}.js")))


def read(name: str) -> tuple[bytes, str] | None:
    """Content and type of a file; None for any other name than those above."""
    found = folder()
    if found is None or name not in _FILES:
        return None
    try:
        with open(os.path.join(found, name), "rb") as file:
            return file.read(), _TYPES[os.path.splitext(name)[1]]
    except OSError:
        return None
