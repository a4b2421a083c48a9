"""Changes of a source that remove findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from irscope.protocol.places import Range
from irscope.vocabulary.fix_methods import FixMethod
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Edit:
    """Replaces a range of a file by a text; an empty range inserts."""

    range: Range
    text: str


@dataclass(frozen=True)
class Fix:
    """A change of the source that removes a finding.  Edits at one position apply in the order given."""

    title: str
    caveat: str
    """What it changes, or when it does not apply; may be empty."""
    edits: tuple[Edit, ...]
    file: str = ""
    """The file that the edits change; empty: that of the finding."""
    method: FixMethod | None = None
    """What it does, if that is known beside the title."""
    steps: tuple[Fix, ...] = ()
    """The fixes of a chain, of which each leads to the next; empty: it is not a chain."""
    of_library: Fix | None = None
    """The fix of a library's function that it makes in a copy of that function."""
    hint: int | None = None
    """The index of the hint of its finding that it carries out; None if it carries out none."""

    @property
    def repairs(self) -> bool:
        """Whether it, or each step of it, repairs what broke; what does not is offered last and by itself."""
        return (self.method is None or self.method.repairs) and all(step.repairs for step in self.steps)

    @property
    def first(self) -> Fix:
        """The first step of a chain, else the fix itself."""
        return self.steps[0] if self.steps else self

    @property
    def identity(self) -> object:
        """What all forms of one fix of a finding have in common: the finding's own, a rule's."""
        return self.method or self.edits


def carrying_out(fixes: Iterable[Fix | None]) -> tuple[Fix, ...]:
    """The fixes that carry out the hints of a finding, given for each hint in order; None for one that no fix carries out."""
    return tuple(dataclasses.replace(fix, hint=index) for index, fix in enumerate(fixes) if fix is not None)
