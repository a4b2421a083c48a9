"""What a family of fixes is, and what it proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.source import Source


@dataclass(frozen=True)
class Proposal:
    """One way to remove a finding: the whole text of the file as it would be."""

    title: str
    caveat: str
    text: str
    last: bool = False
    """Whether it is offered after all others, since it costs more than it gives."""
    method: FixMethod | None = None
    """What it does, where a finding's own fix does the same, or where it repairs nothing."""


@dataclass(frozen=True)
class Family:
    """Fixes of one sort.

    Parameters
    ----------
    name
        For the tests and the benchmark.
    kinds
        Ids of the kinds of findings that it is asked about.
    propose
        Gives candidates for a finding; none if it does not fit.
    codes
        Codes that it is asked about; empty: all of its kinds.
    """

    name: str
    kinds: tuple[str, ...]
    propose: Callable[[Source, Finding], Iterator[Proposal]]
    codes: tuple[str, ...] = ()

    def fits(self, finding: Finding) -> bool:
        """Whether it is asked about a finding."""
        return finding.kind in self.kinds and (not self.codes or finding.code in self.codes)
