"""Turns events into findings, one per range and cause, however often it repeats."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable

from irscope.events.compiles import CompileBook
from irscope.events.listening import LogHandler
from irscope.events.trace import Record
from irscope.findings import registry
from irscope.findings.detector import Detector, Receive
from irscope.findings.moment import Known, look
from irscope.internals.hooks import Hook
from irscope.protocol import Finding, RelatedRole
from irscope.usercode.source import line_text
from irscope.vocabulary.suggestions import listed

_RELATED_KEPT = 20
# Found when this module is imported, so that a fork server has every kind's module before a run begins.
_DETECTORS: tuple[Detector, ...] = tuple(
    detector for module in registry.modules() for detector in getattr(module, "DETECTORS", ())
)
_BY_EVENT: dict[str, list[Detector]] = {}
for _detector in _DETECTORS:
    _BY_EVENT.setdefault(_detector.event, []).append(_detector)


class FindingBook:
    """All findings of a run so far.

    Args:
        compiles: What is known about the compiles.
        publish: Called with each finding that is new or whose count grew.
        current_compile: Returns the compile that is going on in this thread, for the event of the name given.
    """

    def __init__(
        self,
        compiles: CompileBook,
        publish: Callable[[Finding], None],
        current_compile: Callable[[str], str | None],
    ) -> None:
        self._compiles = compiles
        self._publish = publish
        self._current_compile = current_compile
        self._findings: dict[tuple[object, ...], Finding] = {}
        self._known = Known(compiles, self._findings.values())

    def hooks(self, guarded: Callable[[Receive], Receive]) -> list[Hook]:
        """What sees the events of which PyTorch leaves no record; ``guarded`` wraps whatever is called from there."""
        return [each.hook(guarded(self._receiver(each.event))) for each in _DETECTORS if each.hook is not None]

    def handlers(self, guarded: Callable[[Receive], Receive]) -> list[LogHandler]:
        """What hears of events in PyTorch's log; ``guarded`` wraps whatever is called from there."""
        return [each.handler(guarded(self._receiver(each.event))) for each in _DETECTORS if each.handler is not None]

    def note(self, record: Record) -> None:
        """Takes in a record, on the stack on which it was written; ``record.compile`` is unique in the run."""
        self._ask(record)

    def signal(self, name: str, compile: str | None, *data: object, payload: str = "") -> None:
        """Takes in an event that is not in the trace, on the stack on which it happens.

        Args:
            name: What happened; detectors name it as their event.
            compile: The compile that it belongs to.
            data: What the detectors are given.
            payload: The text of the trace's record that it comes from, if there is one.
        """
        self._ask(Record(name, {}, compile, 0, payload), *data)

    def add(self, finding: Finding) -> None:
        """Takes in what a pipeline has found by itself; a finding that counts 0 says what an earlier one follows from."""
        before = self._findings.get(finding.cause)
        if before is not None:
            speaks = finding if registry.kind_of(finding.kind).newest_speaks else before
            finding = dataclasses.replace(
                speaks,
                explanation=speaks.explanation if speaks is finding else _with_another(before, finding),
                count=before.count + finding.count,
                compiles=tuple(dict.fromkeys((*before.compiles, *finding.compiles))),
                targets=tuple(dict.fromkeys((*before.targets, *finding.targets))),
                related=tuple(dict.fromkeys((*before.related, *finding.related)))[:_RELATED_KEPT],
                follows=finding.follows if finding.follows == before.follows or not finding.count else None,
            )
        self._findings[finding.cause] = finding
        self._publish(_with_targets(finding))

    def _receiver(self, event: str) -> Receive:
        return functools.partial(self._received, event)

    def _received(self, event: str, *data: object) -> None:
        self.signal(event, self._current_compile(event), *data)

    def _ask(self, record: Record, *data: object) -> None:
        for detector in _BY_EVENT.get(record.event, ()):
            moment = look(record, self._compiles.get(record.compile), self._known)
            for finding in detector.detect(moment, *data):
                self.add(finding)


def _with_targets(finding: Finding) -> Finding:
    """A prediction says of which devices it is; they are known when the last one has been seen."""
    if not finding.targets:
        return finding
    text = f"A prediction for {listed(finding.targets)}: {finding.message[:1].lower()}{finding.message[1:]}"
    return dataclasses.replace(finding, message=text)


def _with_another(before: Finding, again: Finding) -> str:
    """The explanation, with what another target has in its place, and with where in a library the cause lies if that
    differs below the same call."""
    told = before.explanation
    if not set(again.targets) <= set(before.targets) and again.message != before.message:
        told += f"\nFor {listed(again.targets)}: {again.message}"
    known = {place for place in before.related if place.role is RelatedRole.CAUSE}
    for place in again.related:
        if place.role is RelatedRole.CAUSE and known and place not in known:
            line = place.range.start.line
            where = f"{os.path.basename(place.file)}:{line}"
            text = f"`{code}` ({where})" if (code := line_text(place.file, line).strip()) else where
            told += f"\nAnother cause below the same call: {text}."
    return told
