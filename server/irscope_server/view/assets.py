"""The page's scripts and styles: built from extension/src, packed with the extension and with the Python package."""

from __future__ import annotations

import os

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_OTHERS = frozenset({"view", "dock", "values"})
"""Pages that have a script and styles and are no panels of this page: itself, and those of VS Code alone."""


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
    """The panels that were built: each has a script and styles of its own."""
    found = folder()
    try:
        files = frozenset(os.listdir(found)) if found is not None else frozenset[str]()
    except OSError:
        return ()
    names = sorted(file[: -len(".js")] for file in files if file.endswith(".js"))
    return tuple(name for name in names if f"{name}.css" in files and name not in _OTHERS)


def read(name: str) -> tuple[bytes, str] | None:
    """Content and type of a file of the page or of a panel; None for any other name."""
    found = folder()
    stem, end = os.path.splitext(name)
    is_ours = name in ("view.js", "view.css", "theme.css") or (end in (".js", ".css") and stem in panels())
    if found is None or not is_ours:
        return None
    try:
        with open(os.path.join(found, name), "rb") as file:
            return file.read(), _TYPES[end]
    except OSError:
        return None
