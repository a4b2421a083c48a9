"""Fake value: a script on tensors without storage (``--fake``) needs a value here, and goes on with zeros."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.findings import signals
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_expression
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind

KIND = FindingKind(
    id="fake-value",
    label="Fake value",
    short=("fake value", "fake values"),
    lanes=DEEP_ONLY,
    severity=Severity.INFORMATION,
)


def detect(moment: Moment, what: str) -> Iterator[Finding]:
    """From a tensor without storage that is asked for its values."""
    found = at_expression(
        moment,
        kind=KIND.id,
        code=KIND.id,
        message=f"A tensor without storage has no values, and {what} is needed here.",
        explanation="With --fake tensors have shapes only. The run goes on with zeros where it can, so what depends on "
        "the value may be another path than that of a real run.",
        hints=("Leave this line out of the run, or let the value come from an argument of the script.",),
        severity=KIND.severity,
    )
    if found is not None:
        yield found


DETECTORS = (Detector(signals.VALUE_NEEDED, detect),)
