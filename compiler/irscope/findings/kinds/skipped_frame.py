"""Skipped frame: a function under torch.compile that was not compiled at all, so all of it runs as plain Python.

Where a graph break is the cause, the break is the finding, and this kind reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.capture.stack import RESUME_PREFIX, plain_name
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.protocol import Compile, CompileOutcome, Finding, Severity
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="skipped-frame",
    label="Skipped frame",
    short=("skipped frame", "skipped frames"),
    lanes=FAST_AND_DEEP,
    severity=Severity.HINT,
    explains_steps=("graph-break",),
    order=60,
)


def detect(moment: Moment) -> Iterator[Finding]:
    """When a compile has ended without a graph, and no finding says why."""
    compile = moment.compile
    if compile is None or compile.outcome is not CompileOutcome.SKIPPED or not _is_worth_saying(compile):
        return
    if any(compile.id in finding.compiles for finding in moment.known.findings):
        return
    finding = at_function(
        moment,
        kind=KIND.id,
        code="skipped-frame",
        message=f"`{plain_name(compile.function)}` was traced, but there was nothing to compile in it: it runs as plain Python.",
        explanation="Dynamo found no tensor operation in this function. Tracing and guards take time without any benefit.",
        hints=("Compile the function that does the tensor work instead of this one.",),
        severity=KIND.severity,
    )
    if finding is not None:
        yield finding


def _is_worth_saying(compile: Compile) -> bool:
    """Not for what follows a break, nor for functions of libraries: the user cannot act on that."""
    return is_user_file(compile.file) and not compile.function.startswith(RESUME_PREFIX)


DETECTORS = (Detector("compilation_metrics", detect),)
