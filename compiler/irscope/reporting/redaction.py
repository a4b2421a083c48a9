"""What is taken out of a report that others may read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

PATHS, SOURCE = "paths", "source"
REDACTIONS = (PATHS, SOURCE)
_PATH = re.compile(r"""(?<![\w.:/\\~-])(?:[A-Za-z]:[\\/]|~?/)(?:[^\s"'`<>|:*?(),;\[\]{}/\\]+[\\/])+""")
"""The folders of an absolute path; what comes after them is the file's name."""
_FRAME = re.compile(r"(#\s(?:File: )?)[^#\n]*[\\/]([^\\/#\n]+:\d+ in )")
"""In the comment of a guard.  PyTorch takes the beginning that a path has in common with its own folder away, so that
``/home/me/net.py`` can be ``ome/me/net.py``."""
_CODE = re.compile(r"(?m)(, code: |^\s*code: ).*$")
_QUOTED = re.compile(r"`[^`\n]*`")
_INDENTED = re.compile(r"(?m)^[ \t]{4,}\S.*$\n?")
LEFT_OUT = "[left out]"


class Redaction:
    """Takes parts out of texts.

    Args:
        parts: Parts of `REDACTIONS`.
        files: Paths that are known: their folders are taken out whatever characters are in them.
    """

    def __init__(self, parts: Iterable[str], files: Iterable[str] = ()) -> None:
        self.parts = frozenset(parts)
        folders = {os.path.dirname(file) for file in files if os.path.isabs(file)}
        self._folders = sorted((folder + os.sep for folder in folders if len(folder) > 1), key=len, reverse=True)

    @property
    def takes_source(self) -> bool:
        """Whether no line of the user's source is to be in the report."""
        return SOURCE in self.parts

    @property
    def takes_paths(self) -> bool:
        """Whether no folder is to be in the report."""
        return PATHS in self.parts

    def path(self, path: str) -> str:
        """A path, or only the name of its file."""
        return re.split(r"[\\/]", path)[-1] if self.takes_paths else path

    def text(self, text: str) -> str:
        """A text of a stage, or any other."""
        if self.takes_paths:
            for folder in self._folders:
                text = text.replace(folder, "…/")
            text = _FRAME.sub(r"\1…/\2", _PATH.sub("…/", text))
        if self.takes_source:
            text = _CODE.sub(lambda match: f"{match[1]}{LEFT_OUT}", text)
        return text

    def words(self, text: str) -> str:
        """A sentence about the user's code, which may quote it."""
        text = self.text(text)
        return _INDENTED.sub("", _QUOTED.sub(f"`{LEFT_OUT}`", text)) if self.takes_source else text
