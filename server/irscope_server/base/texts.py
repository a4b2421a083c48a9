"""Texts of files as the editor has them, and columns in the units that the client counts in."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NewType, Protocol, TypeVar

from irscope.usercode.notebooks import notebook_of
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source

_LINE_END = re.compile("\r\n|\n|\r")

_BYTES_PER_UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
_CODEC = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}

T = TypeVar("T")

FileKey = NewType("FileKey", str)
"""One name per file, whatever links lead to it.  Files are compared and looked up by it; it is a path of the file, too."""


class InFile(Protocol):
    """Something that a report places in a file."""

    @property
    def file(self) -> str:
        """The path of the file."""


Placed = TypeVar("Placed", bound=InFile)


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
def file_key(path: str) -> FileKey:
    """The key of a file.  Paths get theirs where they come in: from the editor, from a report, from the store."""
    return FileKey(os.path.normcase(os.path.realpath(path)))


def script_key(path: str) -> FileKey:
    """The key of what is run for a document: the file itself; for a cell, its notebook."""
    return file_key(notebook_of(path) or path)


def keyed(by_path: Mapping[str, T]) -> dict[FileKey, T]:
    """What is known by path, such as the texts of a run, by the keys of the files."""
    return {file_key(path): value for path, value in by_path.items()}


def lines_by_file(texts: Mapping[str, str]) -> dict[FileKey, Sequence[str]]:
    """The lines of texts that are known by path."""
    return {key: split_lines(text) for key, text in keyed(texts).items()}


def by_file(places: Iterable[Placed]) -> dict[FileKey, list[Placed]]:
    """Parts of a report by the files that they are in, in their order."""
    files: dict[FileKey, list[Placed]] = {}
    for place in places:
        files.setdefault(file_key(place.file), []).append(place)
    return files


def path_in_folder(path: str, folder: str) -> str:
    """The path of a file relative to a folder, with slashes, whatever links lead to either."""
    return os.path.relpath(file_key(path), file_key(folder)).replace(os.sep, "/")


class Texts:
    """The current text of a file: the open buffer, else what is on disk.

    Args:
        buffer_of: Gives the text of an open document, or None if the file is not open.
    """

    def __init__(self, buffer_of: Callable[[FileKey], str | None]) -> None:
        self.revision = 0
        """Grows when a document opens, changes, is saved or closes: caches of texts compare it."""
        self._buffer_of = buffer_of
        self._disk: dict[str, tuple[tuple[int, int], list[str]]] = {}
        self._edited: dict[int, tuple[int, Mapping[FileKey, Sequence[str]], bool]] = {}
        self._split: dict[FileKey, tuple[str, list[str]]] = {}

    def lines(self, path: str) -> Sequence[str]:
        """The lines of a file; empty if it cannot be read.  The same list object as long as the text is the same."""
        key = file_key(path)
        text = self._buffer_of(key)
        if text is None:
            self._split.pop(key, None)
            return self._lines_on_disk(key)
        kept = self._split.get(key)
        if kept is None or (kept[0] is not text and kept[0] != text):
            kept = self._split[key] = (text, split_lines(text))
        return kept[1]

    def changed(self) -> None:
        """A document was opened, edited, saved or closed."""
        self.revision += 1

    def is_open(self, path: str) -> bool:
        """Whether there is an open buffer of the file."""
        return self._buffer_of(file_key(path)) is not None

    def are_edited(self, ran: Mapping[FileKey, Sequence[str]]) -> bool:
        """Whether a file that is open has another text than in a run.

        Args:
            ran: Lines as they ran.  The answer is kept for as long as the object lives and no text changes.
        """
        kept = self._edited.get(id(ran))
        if kept is None or kept[0] != self.revision or kept[1] is not ran:
            if len(self._edited) > 64:
                self._edited.clear()
            edited = any(
                self.is_open(key) and (now := self.lines(key)) is not then and list(now) != list(then)
                for key, then in ran.items()
            )
            kept = self._edited[id(ran)] = (self.revision, ran, edited)
        return kept[2]

    def is_as_on_disk(self, path: str) -> bool:
        """Whether the text is what a reader of the file would get, line endings aside."""
        return list(self.lines(path)) == list(self._lines_on_disk(path))

    def _lines_on_disk(self, path: str) -> Sequence[str]:
        try:
            status = os.stat(path)
        except OSError:
            return ()
        version = (status.st_mtime_ns, status.st_size)
        kept = self._disk.get(path)
        if kept is None or kept[0] != version:
            if len(self._disk) > 64:
                self._disk.clear()
            kept = self._disk[path] = (version, split_lines(text_on_disk(path)))
        return kept[1]


def text_on_disk(path: str) -> str:
    """The text of a Python file, decoded as Python does it; empty if it cannot be read."""
    try:
        return decode_source(read_bounded(path))
    except (OSError, ValueError):
        return ""
