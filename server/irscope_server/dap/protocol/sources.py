"""The documents of a session: the user's files by path, everything else by a number that holds for the session."""

from __future__ import annotations

import os

from irscope_server.dap.base.sections import Section, real
from irscope_server.dap.engine.recording import Recording
from irscope_server.dap.protocol.wire import Arguments, Body, WrongMessage

_ENDINGS = {
    "python": ".py",
    "cpp": ".cpp",
    "c": ".c",
    "python-bytecode": ".pyc.txt",
    "irscope-guards": ".guards.txt",
    "llvm": ".ll",
    "mlir": ".mlir",
    "ptx": ".ptx",
    "sass": ".sass",
    "asm": ".s",
    "assembly": ".s",
    "json": ".json",
}


class Sources:
    """From sources to documents and back."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._sections: dict[str, Section] = {}
        self._references: dict[str, int] = {}
        self._names: list[str] = []
        self._changed: dict[str, str | None] = {}
        self._lines: dict[str, list[str]] = {}
        for section in recording.documents():
            self._sections[section.stage.id] = section
            self._reference(section.stage.id)

    def _reference(self, key: str) -> int:
        if key not in self._references:
            self._names.append(key)
            self._references[key] = len(self._names)
        return self._references[key]

    def of_section(self, section: Section) -> Body:
        """A stage, as the protocol names a source."""
        section = section.document
        stage = section.stage
        ending = _ENDINGS.get(stage.language, ".txt")
        name = stage.id.removeprefix(f"{section.compile.id}/")
        return {
            "name": f"{section.compile.id} {name}{ending}",
            "path": f"{self._recording.report.run}/{stage.id}{ending}",
            "sourceReference": self._reference(stage.id),
            "origin": f"{section.title} of compile {section.compile.id}",
            "adapterData": {"stage": stage.id},
        }

    def of_file(self, path: str) -> Body:
        """A file of the user's.  One that was edited since the run, or is gone, is shown as it was then."""
        if path not in self._changed:
            self._changed[path] = self._recording.text_as_run(path)
        name = os.path.basename(path) or path or "unknown"
        if self._changed[path] is None:
            return (
                {"name": name, "path": path}
                if os.path.isabs(path)
                else {"name": name, "presentationHint": "deemphasize"}
            )
        return {
            "name": f"{name} (as it ran)",
            "path": f"{self._recording.report.run}/{name}",
            "sourceReference": self._reference(f"file:{path}"),
            "origin": "the file was edited since the run",
            "adapterData": {"file": path},
        }

    def column(self, path: str, line: int, index: int) -> int:
        """A 0-based column of a file's line in UTF-16 units, in which the protocol counts, from an index of its text."""
        if path not in self._lines:
            text = self._changed.get(path) or self._recording.text_of(path)
            self._lines[path] = [] if text.isascii() else text.split("\n")
        lines = self._lines[path]
        return utf16_column(lines[line - 1], index) if 1 <= line <= len(lines) else index

    def index(self, path: str, line: int, column: int) -> int:
        """The opposite of `column`."""
        text = self._recording.text_of(path)
        lines = [] if text.isascii() else text.split("\n")
        if not 1 <= line <= len(lines):
            return column
        return len(lines[line - 1].encode("utf-16-le", "surrogatepass")[: 2 * column].decode("utf-16-le", "ignore"))

    def loaded(self) -> list[Body]:
        """Every document: the user's files of the run, then the stages in order."""
        files = dict.fromkeys(compile.file for compile in self._recording.report.compiles if compile.file)
        files.update(dict.fromkeys(self._recording.sources))
        return [self.of_file(path) for path in files] + [self.of_section(each) for each in self._sections.values()]

    def content(self, reference: int) -> tuple[str, str]:
        """Text and MIME type of a document.  Raises WrongMessage for a number that names none."""
        key = self._key(reference)
        if key.startswith("file:"):
            return self._changed.get(key[5:]) or "", "text/x-python"
        section = self._sections[key]
        language = section.stage.language
        return section.text, f"text/x-{language}" if language not in ("", "plaintext") else "text/plain"

    def find(self, source: Arguments) -> Section | str:
        """The stage that a client's source names, or the path of a file.

        Raises WrongMessage if it names neither.
        """
        data = source.raw("adapterData")
        if isinstance(data, dict):  # ours, given back: it means the same in a later session, where the number does not
            if isinstance(data.get("stage"), str) and data["stage"] in self._sections:
                return self._sections[data["stage"]]
            if isinstance(file := data.get("file"), str):
                return file
        if reference := source.integer("sourceReference", 0):
            key = self._key(reference)
            return key[5:] if key.startswith("file:") else self._sections[key]
        path = source.text("path", "")
        if not path:
            raise WrongMessage("A source needs a path or a sourceReference.")
        for section in self._sections.values():
            if path.endswith(self.of_section(section)["path"]):
                return section
        return real(path)

    def _key(self, reference: int) -> str:
        if not 1 <= reference <= len(self._names):
            raise WrongMessage(f"Unknown sourceReference: {reference}.")
        return self._names[reference - 1]


def utf16_column(line: str, index: int) -> int:
    """The 0-based column in UTF-16 units of an index into a line."""
    return len(line[:index].encode("utf-16-le", "surrogatepass")) // 2
