"""What a binary for an NVIDIA GPU says about the one kernel in it: the records of ``.nv.info`` of an ELF file.

They equal what ``ptxas -v`` prints.  Bytes that are spilled are not in it: a stack has other things, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from irscope.vocabulary.records import dataclass

_INFO, _WITH_PAYLOAD = ".nv.info", 0x04
_REGISTERS, _FRAME = 0x2F, 0x11
"""Kinds of records: each is of a symbol."""
_SECTION = struct.Struct("<II8x8xQQ24x")
"""A section's name, its type, its offset and its size."""
_RECORD, _OF_SYMBOL = struct.Struct("<BBH"), struct.Struct("<II")


@dataclass(frozen=True)
class CubinFacts:
    """Registers of a thread, and bytes of its stack."""

    registers: int
    stack: int


def facts_of(content: bytes) -> CubinFacts:
    """Raises ValueError if the content is not a binary of a kernel."""
    try:
        found = list(_records(_info(content)))
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"not a binary for an NVIDIA GPU: {error}") from error
    registers = [value for kind, value in found if kind == _REGISTERS]
    if not registers:
        raise ValueError("a binary that does not say how many registers its kernel has")
    return CubinFacts(max(registers), max((value for kind, value in found if kind == _FRAME), default=0))


def _info(content: bytes) -> bytes:
    """The section ``.nv.info``."""
    if content[:4] != b"\x7fELF":
        raise ValueError("not an ELF file")
    (start,) = struct.unpack_from("<Q", content, 0x28)
    _, count, names = struct.unpack_from("<HHH", content, 0x3A)
    sections = [_SECTION.unpack_from(content, start + number * _SECTION.size) for number in range(count)]
    for name, _, offset, size in sections:
        at = sections[names][2] + name
        if content[at : content.index(b"\0", at)] == _INFO.encode():
            return content[offset : offset + size]
    return b""


def _records(info: bytes) -> Iterator[tuple[int, int]]:
    """The kinds and the numbers of the records that have one for a symbol."""
    at = 0
    while at + _RECORD.size <= len(info):
        form, kind, size = _RECORD.unpack_from(info, at)
        at += _RECORD.size
        if form == _WITH_PAYLOAD:
            if size == _OF_SYMBOL.size:
                yield kind, _OF_SYMBOL.unpack_from(info, at)[1]
            at += size
