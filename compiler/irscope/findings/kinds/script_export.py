"""What the script exports by itself: why ``torch.export`` or AOTInductor fails, what draft export reports, and packages that
are called with other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irscope.events.stack import innermost_user, live_places, related_to
from irscope.findings import draft_exports, exporting
from irscope.findings.detector import Detector
from irscope.findings.kinds.specialization import KIND as SPECIALIZATION
from irscope.findings.moment import Moment
from irscope.internals.exporting import report_of
from irscope.internals.script_exports import Mismatch, exports, failed_packages, wrong_sizes
from irscope.protocol import Finding, Origin, Severity


def detect_export(_moment: Moment, made: Any) -> Iterator[Finding]:
    """When an export of the script's raises, or draft export has a report."""
    if (call := _call()) is None:
        return
    if isinstance(made, BaseException):
        yield exporting.finding_of(made, "The call of torch.export raises this.", call.file, call.line)
    elif (report := report_of(made)) is not None:
        yield from draft_exports.findings_of(draft_exports.issues_of(report, made), call)


def detect_package(_moment: Moment, error: BaseException) -> Iterator[Finding]:
    """When AOTInductor raises for an exported program of the script's."""
    if (call := _call()) is not None:
        why = "The call raises this: the exported program is there, and cannot be compiled."
        yield exporting.finding_of(error, why, call.file, call.line, what="AOTInductor")


def _call() -> Origin | None:
    """The user's line that is running."""
    places = live_places()
    at = innermost_user(places)
    return None if at is None else Origin(places[at].file, places[at].range.start.line)


def detect_size(moment: Moment, found: Mismatch) -> Iterator[Finding]:
    """When a package is called with a size that it was not compiled for."""
    places = live_places()
    if (at := innermost_user(places)) is None:
        return
    yield Finding(
        kind=SPECIALIZATION.id,
        code="package-size",
        severity=Severity.WARNING,
        message=(
            f"This package of AOTInductor is for size {found.compiled} of `{found.name}` in dimension {found.dimension}, "
            f"and is called with {found.called}. Nothing checks it: the result may be wrong."
        ),
        explanation="`torch.export` fixes each size of the example that is not asked to be dynamic.",
        hints=(
            f'Export it with a dynamic size: `dynamic_shapes={{"{found.name}": {{{found.dimension}: torch.export.Dim("size")}}}}`.',
            "Or let the package check its inputs: set `AOTI_RUNTIME_CHECK_INPUTS=1` in the environment.",
        ),
        link=None,
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(),
        related=related_to(places, at),
    )


DETECTORS = (
    Detector("script-exported", detect_export, hook=exports),
    Detector("script-package-failed", detect_package, hook=failed_packages),
    Detector("package-called", detect_size, hook=wrong_sizes),
)
