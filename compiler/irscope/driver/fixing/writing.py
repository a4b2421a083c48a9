"""Changed texts, written into the user's files: what a change does not touch keeps its bytes."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Mapping

from irscope.comparing.texts import lines_with_ends, opcodes
from irscope.usercode.reading import is_read_only, read_bounded
from irscope.usercode.source import decode_source, source_encoding
from irscope.usercode.writing import write_files

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_END = re.compile(rb"(?:\r\n|\n|\r)?\Z")


def write(texts: Mapping[str, tuple[str, str]]) -> None:
    """Writes files, with what each was and will be; none if one of them cannot be written: they were proven together.

    Raises LookupError if one is gone, has changed since it was read, is read-only, or lacks a character in its encoding;
    WriteError if one cannot be written.
    """
    made = {path: _changed(path, before, text) for path, (before, text) in texts.items()}
    for path in made:
        if is_read_only(path):
            raise LookupError(f"{path} is read-only. Nothing is written; make it writable and run the command again.")
    write_files(made)


def _changed(path: str, before: str, text: str) -> bytes:
    """The bytes that a file gets."""
    try:
        data = read_bounded(path)
    except OSError as error:
        lost = f"{path} cannot be read any more ({error.strerror or error})."
        raise LookupError(f"{lost} Nothing is written; run the command again.") from None
    if decode_source(data) != before:
        raise LookupError(f"{path} was changed meanwhile. Nothing is written; run the command again.")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if mark else source_encoding(data)
    raw, old, new = _LINE.findall(data[len(mark) :]), lines_with_ends(before), lines_with_ends(text)
    if len(raw) != len(old):
        raise LookupError(f"{path} has an encoding ({encoding}) that irscope cannot write. Save it as UTF-8.")
    usual = Counter(map(_end_of, raw)).most_common(1)[0][0] if raw else b""
    made = [mark]
    for tag, i, j, k, m in opcodes(old, new):
        if tag == "equal":
            made += raw[i:j]
            continue
        for number in range(i, j):
            if _encoded(path, old[number], encoding, _end_of(raw[number])) != raw[number]:
                raise LookupError(f"{path}:{number + 1} has bytes that are not {encoding}. Nothing is written.")
        near = _end_of(raw[i]) if i < j else b""
        made += [_encoded(path, line, encoding, near or usual or b"\n") for line in new[k:m]]
    return b"".join(made)


def _end_of(line: bytes) -> bytes:
    found = _END.search(line)
    return found[0] if found is not None else b""


def _encoded(path: str, line: str, encoding: str, end: bytes) -> bytes:
    """A line with the end and the encoding that its file has."""
    bare = line.removesuffix("\n")
    try:
        return bare.encode(encoding) + (end if len(bare) < len(line) else b"")
    except UnicodeEncodeError as error:
        lacks = f"The fix has {bare[error.start]!r}, which the encoding of {path} ({encoding}) lacks."
        raise LookupError(f"{lacks} Nothing is written; save the file as UTF-8 and run the command again.") from None
