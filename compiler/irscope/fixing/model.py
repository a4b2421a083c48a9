"""What a rule is, and what it proposes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from irscope.fixing.source import Source
from irscope.protocol import Finding, FixMethod
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Proposal:
    """One way to remove a finding: the whole text of the file as it would be.

    Args:
        does: What it does: a method, or the title that it has.
        last: Whether it is offered after all others, since it costs more than it gives.
    """

    does: FixMethod | str
    caveat: str
    text: str
    last: bool = False

    @property
    def title(self) -> str:
        """What the fix is called."""
        return self.does.title if isinstance(self.does, FixMethod) else self.does

    @property
    def method(self) -> FixMethod | None:
        """What it does, if more than one part of irscope makes or asks for it."""
        return self.does if isinstance(self.does, FixMethod) else None


@dataclass(frozen=True)
class Example:
    """A function body before and after a rule; the rule's test is that irscope's own finding leads from one to the other.

    Args:
        before, after: The body of ``def f(x)``, which is compiled; a rule that changes more has whole scripts, with
            ``is_script``.
        calls: What calls it.
        above: What is above the function.
    """

    before: str
    after: str
    calls: str = "f(torch.ones(4))"
    above: str = ""
    is_script: bool = False

    @classmethod
    def script(cls, diff: str) -> Example:
        """A whole script, as a diff; ``import torch`` is above it, unless it has that itself."""
        head = "" if "import torch\n" in diff else "import torch\n\n"
        before, after = _sides(diff)
        return cls(head + before, head + after, is_script=True)

    @classmethod
    def body(cls, diff: str, calls: str = calls, above: str = above) -> Example:
        """A function body, as a diff."""
        return cls(*_sides(diff), calls, above)


def _sides(diff: str) -> tuple[str, str]:
    """The texts before and after: lines with ``-`` are only before, those with ``+`` only after."""
    lines = textwrap.dedent(diff).strip("\n").split("\n")
    before, after = ("\n".join(line[2:] for line in lines if line[:1] != sign) for sign in "+-")
    return before, after


OF_VALUES = ("GB0170", "GB0124", "GB0033")
"""The codes of breaks where Python asks for the value of a tensor."""


@dataclass(frozen=True)
class Rule:
    """Changes of one sort.

    Args:
        name: For the tests and the benchmark.
        kinds: The ids of the kinds of findings that it is asked about.
        propose: Gives candidates for a finding; none if it does not fit.  It may raise ValueError: then there are no
            more.
        codes: Codes that it is asked about; empty: all of its kinds.
        examples: What it does to some texts.
    """

    name: str
    kinds: tuple[str, ...]
    propose: Callable[[Source, Finding], Iterator[Proposal]]
    codes: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()

    def fits(self, finding: Finding) -> bool:
        """Whether it is asked about a finding."""
        return finding.kind in self.kinds and (not self.codes or finding.code in self.codes)
