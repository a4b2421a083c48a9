"""What a kind of finding is: everything that lists or describes kinds reads it here.

Each kind is declared once, in its own module of `irscope.findings.kinds`; `irscope.findings.registry` collects them.
"""

from __future__ import annotations

from irscope.vocabulary.lanes import Lane
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.severities import Severity

FAST_AND_DEEP = (Lane.FAST, Lane.DEEP)
DEEP_ONLY = (Lane.DEEP,)
VALUE_RUNS_ONLY: tuple[Lane, ...] = ()
"""For kinds that neither lane finds, only a run that compares values."""


@dataclass(frozen=True)
class FindingKind:
    """One kind of finding.

    Args:
        id: What findings carry and what users write: ``graph-break``.
        label: The title of a finding of this kind: ``Graph break``.
        short: One and many of them, in few words: ``break``, ``breaks``.
        lanes: The lanes in which it is found.
        severity: The severity that its findings usually have.
        filter_label: What the debugger calls these findings where it offers to stop at them; ``label`` with an *s* if
            empty.
        stops_debugger: Whether the debugger stops at them until the user says otherwise.
        in_compile: Whether its findings have a place in a compile.  The debugger can stop only at these, and a fast run
            tells nothing about the others of an older deep run.
        deep_codes: What codes begin with that only the deep lane gives, if they do not begin with the id.
        newest_speaks: Whether of several findings at one place the newest one's words count, since they describe all of
            them.
        explains_steps: Outcomes of steps in a symbolic trace that a finding of this kind explains.
        costs_every_call: It costs no compile time, but from then on calls run as plain Python.  A list by cost puts it
            first.
        facts: The class of what is known about its findings (`irscope.protocol.facts`); None if there is nothing beside
            the words.
        order: Where it comes in lists; equal ones are sorted by id.
    """

    id: str
    label: str
    short: tuple[str, str]
    lanes: tuple[Lane, ...]
    severity: Severity
    filter_label: str = ""
    stops_debugger: bool = False
    in_compile: bool = True
    deep_codes: tuple[str, ...] = ()
    newest_speaks: bool = False
    explains_steps: tuple[str, ...] = ()
    costs_every_call: bool = False
    facts: type[object] | None = None
    order: int = 1000

    @property
    def title_of_many(self) -> str:
        """The label of its exception filter in the debugger."""
        return self.filter_label or f"{self.label}s"
