"""The memory of a kernel's arguments, and what is checked at each access.

Each tensor's memory is a *region*.  An access outside of all regions, or past the end of the one that the pointer came
from, is not made: a read gives the fallback of the load, and a finding says so.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from irscope.vocabulary.records import dataclass

OUT_OF_BOUNDS_READ = "out-of-bounds-read"
OUT_OF_BOUNDS_WRITE = "out-of-bounds-write"
NEVER_WRITTEN = "never-written"
RACE = "race"
NON_FINITE = "non-finite"
LEFT_UNWRITTEN = "left-unwritten"
UNDEFINED = "undefined"
"""Behaviour that C++ does not define."""
_NOBODY = -1
_SEVERAL = -2


@dataclass
class Problem:
    """What an access or a statement did wrong, where it did so first, and how often.

    Args:
        line: The line of the kernel's text.
        program: The program that did it first.
        argument: The parameter whose memory it is; empty if the address is far from all.
        index: The first element of that memory; negative before its beginning.
        elements: How many elements in all programs.
    """

    kind: str
    line: int
    program: tuple[int, int, int]
    argument: str = ""
    index: int = 0
    elements: int = 0
    message: str = ""


@dataclass
class Region:
    """The memory behind one or more arguments.

    Args:
        storage: A flat tensor of bytes; ``size``: bytes of an element.
        written, reader, writer: By element (numpy): whether there is a value; which program read it, and which wrote it
            without an atomic.
    """

    argument: str
    storage: Any
    size: int
    written: Any
    reader: Any
    writer: Any
    stored: Any
    """Whether this launch has written it."""
    line: int = 0
    """The line of the statement that wrote last."""

    @property
    def base(self) -> int:
        """The address of its first byte."""
        return int(self.storage.data_ptr())


@dataclass
class Checks:
    """Looks at each access of a kernel."""

    regions: list[Region]
    line: Callable[[], int]
    problems: dict[tuple[str, int, str], Problem] = field(default_factory=dict)
    program: tuple[int, int, int] = (0, 0, 0)
    number: int = 0
    """The number of the program among those that are run."""
    touched: Callable[[str, int, str], None] | None = None
    """Gets each access of an element of `watched`: parameter, element, ``read`` or ``write``."""
    watched: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Elements of the memory by parameter."""
    non_finite: list[int] = field(default_factory=list)
    """Numbers of programs that wrote a value that is not finite."""

    def __post_init__(self) -> None:
        self._np: Any = sys.modules["numpy"]
        self.regions.sort(key=lambda each: each.base)
        self._bases = [each.base for each in self.regions]
        self._slots: dict[tuple[str, int], Any] = {}

    def allowed(self, addresses: Any, mask: Any, size: int, kind: str) -> Any:
        """The part of a mask whose addresses are in memory; tells about the others, and notes who reads and writes.

        Args:
            kind: ``read``, ``write`` or ``atomic``.
        """
        np = self._np
        mask = np.broadcast_to(mask, addresses.shape)
        if not mask.any():
            return mask
        flat = addresses.ravel()[mask.ravel()].astype(np.int64)
        region = self._region_of(int(np.median(flat)) if len(flat) > 1 else int(flat[0]))
        offsets = flat - region.base
        inside = (offsets >= 0) & (offsets + size <= region.storage.numel())
        if not inside.all():
            elsewhere = [other for other in self.regions if other is not region]
            others = np.zeros_like(inside)
            for other in elsewhere if self._mixes else ():
                own = (flat >= other.base) & (flat + size <= other.base + other.storage.numel())
                self._note(other, (flat[own] - other.base) // other.size, kind)
                others |= own
            outside = ~(inside | others)
            if outside.any():
                where = OUT_OF_BOUNDS_READ if kind == "read" else OUT_OF_BOUNDS_WRITE
                first = int(offsets[outside][0]) // region.size
                self.tell(where, region.argument, first, int(outside.sum()))
            whole = np.zeros(addresses.size, dtype=bool)
            whole[np.flatnonzero(mask.ravel())[inside | others]] = True
            mask = whole.reshape(addresses.shape)
        self._note(region, offsets[inside] // region.size, kind)
        return mask

    _mixes = True
    """Blocks of pointers may point into several tensors."""

    def _region_of(self, address: int) -> Region:
        at = bisect.bisect_right(self._bases, address) - 1
        near = self.regions[max(at, 0)]
        if at + 1 < len(self.regions):
            after = self.regions[at + 1]
            if address - (near.base + near.storage.numel()) > after.base - address:
                return after
        return near

    def _note(self, region: Region, elements: Any, kind: str) -> None:
        if not len(elements):
            return
        if self.touched is not None:
            for element in self.watched.get(region.argument, ()):
                if (elements == element).any():
                    self.touched(region.argument, element, kind)
        if kind == "read":
            if not (known := region.written[elements]).all():
                missing = elements[~known]
                self.tell(NEVER_WRITTEN, region.argument, int(missing[0]), len(missing))
            others = region.writer[elements]
            if ((others != _NOBODY) & (others != self.number)).any():
                self._race(region, elements, others, "reads what program {} writes")
            before = region.reader[elements]
            region.reader[elements] = self._np.where(
                (before == _NOBODY) | (before == self.number), self.number, _SEVERAL
            )
            return
        if kind == "write":
            others = region.writer[elements]
            if ((others != _NOBODY) & (others != self.number)).any():
                self._race(region, elements, others, "writes what program {} writes, too")
            readers = region.reader[elements]
            if ((readers != _NOBODY) & (readers != self.number)).any():
                self._race(region, elements, readers, "writes what program {} reads")
            region.writer[elements] = self.number
        region.line = self.line()
        region.written[elements] = True
        region.stored[elements] = True

    def _race(self, region: Region, elements: Any, others: Any, what: str) -> None:
        with_other = (others != _NOBODY) & (others != self.number)
        first = int(elements[with_other][0])
        other = int(others[with_other][0])
        name = str(self.names.get(other, "another")) if other >= 0 else "another"
        self.tell(RACE, region.argument, first, int(with_other.sum()), what.format(name))

    names: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Number of a program → its indices."""

    def tell(self, kind: str, argument: str, index: int, elements: int, message: str = "") -> None:
        """Notes a problem at the statement that is executed; later ones of the same kind there are counted."""
        key = (kind, line := self.line(), argument)
        known = self.problems.get(key)
        if known is None:
            self.problems[key] = Problem(kind, line, self.program, argument, index, elements, message)
        else:
            known.elements += elements

    def lanes(self, addresses: Any, values: Any, mask: Any) -> None:
        """Tells if lanes of one store write different values to one address."""
        np = self._np
        flat, written = addresses[mask], values[mask]
        order = np.argsort(flat, kind="stable")
        flat, written = flat[order], written[order]
        same = flat[1:] == flat[:-1]
        if same.any() and (clash := same & (written[1:] != written[:-1])).any():
            address = int(flat[1:][clash][0])
            region = self._region_of(address)
            index = (address - region.base) // region.size
            self.tell(RACE, region.argument, index, int(clash.sum()), "writes several values to one address")

    def stored_values(self, values: Any, mask: Any) -> None:
        """Notes whether what is written is finite."""
        np = self._np
        if values.dtype.kind == "f" and self.number not in self.non_finite:
            with np.errstate(invalid="ignore"):
                broken = ~np.isfinite(values)
            if broken.any() and (np.broadcast_to(broken, mask.shape) & mask).any():
                self.non_finite.append(self.number)
