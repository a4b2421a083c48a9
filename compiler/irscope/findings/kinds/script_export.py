"""What the script exports by itself: why ``torch.export`` fails, and packages that are called with other sizes."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.events.stack import innermost_user, live_places, related_to
from irscope.findings import exporting
from irscope.findings.detector import Detector
from irscope.findings.kinds.specialization import KIND as SPECIALIZATION
from irscope.findings.moment import Moment
from irscope.internals.script_exports import Mismatch, failed_exports, wrong_sizes
from irscope.protocol import Finding, Severity


def detect_failure(moment: Moment, error: BaseException) -> Iterator[Finding]:
    """When an export of the script's raises."""
    places = live_places()
    if (at := innermost_user(places)) is not None:
        yield exporting.finding_of(
            error, "The call of torch.export raises this.", places[at].file, places[at].range.start.line
        )


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
    Detector("script-export-failed", detect_failure, hook=failed_exports),
    Detector("package-called", detect_size, hook=wrong_sizes),
)
