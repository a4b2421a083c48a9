"""Texts of files as the editor has them, and columns in the units that the client counts in."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence

from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source

_LINE_END = re.compile("\r\n|\n|\r")

_BYTES_PER_UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
_CODEC = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


def split_lines(text: str) -> list[str]:
    """Lines as LSP and Python's tokenizer count them.

    `str.splitlines` also splits at form feeds and at U+2028, which would shift every line below one.
    """
    return _LINE_END.split(text)


def to_units(line: str, column: int, encoding: str) -> int:
    """An index into a line as a Python string → the client's units.  Columns beyond the line are cut to its end."""
    head = line[:column]
    if head.isascii():
        return len(head)
    return len(head.encode(_CODEC[encoding], "surrogatepass")) // _BYTES_PER_UNIT[encoding]


def from_units(line: str, units: int, encoding: str) -> int:
    """The client's units → an index into the line as a Python string."""
    if line.isascii():
        return min(units, len(line))
    data = line.encode(_CODEC[encoding], "surrogatepass")[: units * _BYTES_PER_UNIT[encoding]]
    return len(data.decode(_CODEC[encoding], "ignore"))


def from_bytes(line: str, byte: int) -> int:
    """A UTF-8 byte offset, as the syntax tree has it, as an index into the line."""
    return byte if line.isascii() else len(line.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore"))


@functools.lru_cache(maxsize=4096)
def file_key(path: str) -> str:
    """One name per file, whatever links lead to it; what the findings of a file are looked up by."""
    return os.path.normcase(os.path.realpath(path))


class Texts:
    """The current text of a file: the open buffer, else what is on disk.

    Parameters
    ----------
    buffer_of
        Gives the text of an open document by its `file_key`, or None if the file is not open.
    """

    def __init__(self, buffer_of: Callable[[str], str | None]) -> None:
        self.revision = 0
        """Grows when a document opens, changes, is saved or closes: caches of texts compare it."""
        self._buffer_of = buffer_of
        self._disk: dict[str, tuple[tuple[int, int], list[str]]] = {}
        self._edited: dict[int, tuple[int, Mapping[str, Sequence[str]], bool]] = {}
        self._split: dict[str, tuple[str, list[str]]] = {}

    def lines(self, path: str) -> Sequence[str]:
        """The lines of a file; empty if it cannot be read.  The same list object as long as the text is the same."""
        key = file_key(path)
        text = self._buffer_of(key)
        if text is None:
            self._split.pop(key, None)
            return self._lines_on_disk(key)
        known = self._split.get(key)
        if known is None or (known[0] is not text and known[0] != text):
            known = (text, split_lines(text))
            self._split[key] = known
        return known[1]

    def changed(self) -> None:
        """A document was opened, edited, saved or closed."""
        self.revision += 1

    def is_open(self, key: str) -> bool:
        """Whether there is an open buffer of the file; `key` is that of `file_key`."""
        return self._buffer_of(key) is not None

    def are_edited(self, ran: Mapping[str, Sequence[str]]) -> bool:
        """Whether a file that is open has another text than in a run.

        Parameters
        ----------
        ran
            Lines as they ran, by `file_key`.  The answer is kept for as long as the object lives and no text changes.
        """
        known = self._edited.get(id(ran))
        if known is None or known[0] != self.revision or known[1] is not ran:
            if len(self._edited) > 64:
                self._edited.clear()
            edited = any(
                self.is_open(key) and (now := self.lines(key)) is not then and list(now) != list(then)
                for key, then in ran.items()
            )
            known = self._edited[id(ran)] = (self.revision, ran, edited)
        return known[2]

    def is_as_on_disk(self, path: str) -> bool:
        """Whether the text is what a reader of the file would get, line endings aside."""
        return list(self.lines(path)) == list(self._lines_on_disk(file_key(path)))

    def _lines_on_disk(self, path: str) -> Sequence[str]:
        try:
            status = os.stat(path)
        except OSError:
            return ()
        version = (status.st_mtime_ns, status.st_size)
        known = self._disk.get(path)
        if known is None or known[0] != version:
            if len(self._disk) > 64:
                self._disk.clear()
            known = (version, split_lines(text_on_disk(path)))
            self._disk[path] = known
        return known[1]


def text_on_disk(path: str) -> str:
    """The text of a Python file, decoded as Python does it; empty if it cannot be read."""
    try:
        return decode_source(read_bounded(path))
    except (OSError, ValueError):
        return ""
