"""What a run begins with, as people write it in settings: a script, ``-m package.module``, ``pytest tests/x.py::test``."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass

from irscope.protocol import EntryKind
from irscope.usercode.notebooks import is_notebook

from irscope_server.base.texts import FileKey, file_key


class BadEntry(ValueError):
    """What is not an entry; the message says what one looks like."""


@dataclass(frozen=True)
class Entry:
    """The beginning of a run.

    Args:
        target: The absolute path of a script, a dotted name or a pytest node id.
        args: What was written after it.
        folder: The workspace folder that names and relative paths start at.
    """

    kind: EntryKind
    target: str
    args: tuple[str, ...] = ()
    folder: str = ""

    @property
    def key(self) -> str:
        """What its runs are kept under: the key of a script's file, else a text that is not a path."""
        if self.kind.is_file:
            return self.file_key
        return f"{self.kind.value}:{self.target} in {self.folder}"

    @property
    def file_key(self) -> FileKey:
        """The key of the file that it begins with."""
        return file_key(self.file)

    @property
    def file(self) -> str:
        """The file that it begins with, as far as it can be told without running anything."""
        if self.kind.is_file:
            return self.target
        if self.kind is EntryKind.PYTEST:
            return os.path.join(self.folder, self.target.partition("::")[0])
        path = os.path.join(*self.target.split("."))
        places = [os.path.join(self.folder, *above, path) for above in ((), ("src",))]
        files = [file for place in places for file in (os.path.join(place, "__main__.py"), f"{place}.py")]
        return next((file for file in files if os.path.isfile(file)), files[1])

    @property
    def title(self) -> str:
        """As people write it, relative to the workspace folder."""
        if self.kind is EntryKind.MODULE:
            words = ["-m", self.target]
        elif self.kind is EntryKind.PYTEST:
            words = ["pytest", self.target]
        else:
            path = os.path.relpath(self.target, self.folder) if self.folder else self.target
            words = [self.target if path.startswith("..") else path]
        return shlex.join([*words, *self.args])

    @property
    def name(self) -> str:
        """Short, for a status line."""
        return os.path.basename(self.target) if self.kind.is_file else self.title

    @property
    def stored_script(self) -> str:
        """What the store calls it: as `irscope.driver.driver.RunSpec.stored_script`."""
        if self.kind is EntryKind.MODULE:
            return f"-m {self.target}"
        return f"pytest {self.target}" if self.kind is EntryKind.PYTEST else self.target


def script_entry(path: str, folder: str = "") -> Entry:
    """The entry of a file that is run by itself: a script or a notebook."""
    return Entry(EntryKind.NOTEBOOK if is_notebook(path) else EntryKind.SCRIPT, path, (), folder)


def parse_entry(text: str, folder: str) -> Entry:
    """An entry from a setting.

    ``scripts/train.py --small``, ``-m package.module ARGS``, ``pytest tests/test_x.py::test_y``; ``python`` may come
    before it.  A path with blanks is taken as it is where there is such a file.

    Raises:
        BadEntry: It is none of these.
    """
    whole = os.path.join(folder, os.path.expanduser(text.strip()))
    if text.strip().endswith((".py", ".pyw", ".ipynb")) and os.path.isfile(whole):
        return script_entry(os.path.normpath(whole), folder)
    words = _words_of(text)
    if not words:
        raise BadEntry(_wrong(text))
    first, *rest = words
    if first == "pytest":
        nodes = [word for word in rest if not word.startswith("-")]
        if not nodes:
            raise BadEntry(_wrong(text))
        return Entry(EntryKind.PYTEST, nodes[0], tuple(word for word in rest if word != nodes[0]), folder)
    if first == "-m":
        if not rest or not all(part.isidentifier() for part in rest[0].split(".")):
            raise BadEntry(_wrong(text))
        return Entry(EntryKind.MODULE, rest[0], tuple(rest[1:]), folder)
    if "::" in first:
        return Entry(EntryKind.PYTEST, first, tuple(rest), folder)
    if first.startswith("-"):
        raise BadEntry(_wrong(text))
    path = os.path.normpath(os.path.join(folder, os.path.expanduser(first)))
    return Entry(script_entry(path).kind, path, tuple(rest), folder)


def _words_of(text: str) -> list[str]:
    """The words of a command line, without Python's; those of ``-m pytest`` begin with pytest."""
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    if words and words[0] in ("python", "python3"):
        words = words[1:]
    return words[1:] if words[:2] == ["-m", "pytest"] else words


def _wrong(text: str) -> str:
    return (
        f"{text!r} is not an entry: name a script (scripts/train.py), a module (-m package.module) or a test"
        " (pytest tests/test_model.py::test_forward)."
    )
