"""Bypassed: the script calls another method of a compiled module than its ``forward``, so nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irscope.events.stack import FramePlace, innermost_user, live_places
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.internals.bypasses import methods_of_compiled
from irscope.internals.hooks import Hook
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="bypassed",
    label="Bypassed",
    short=("bypass", "bypasses"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    order=65,
)


def _methods(receive: Callable[..., None]) -> Hook:
    return methods_of_compiled(_here, receive)


def _here() -> FramePlace | None:
    places = live_places()
    at = innermost_user(places)
    return None if at is None else places[at]


def detect_method(moment: Moment, module: str, method: str, place: FramePlace | None) -> Iterator[Finding]:
    """At the end of a run in which nothing was compiled."""
    if place is None or moment.known.compiles.programs():
        return
    yield Finding(
        kind=KIND.id,
        code="method",
        severity=KIND.severity,
        message=f"`{method}` is a method of the `{module}` inside of the compiled module: it runs as plain Python, and what it calls, too.",
        explanation="`torch.compile(module)` compiles the call of the module, `model(x)`, and no other method. A method that calls `self(x)` calls the module that is not compiled.",
        hints=(
            f"Compile the method: `model.{method} = torch.compile(model.{method})`.",
            "Or call the compiled module itself: `model(x)`.",
            f"Or compile in place: `model = {module}(...)`, then `model.compile()`. `self(x)` in its methods is compiled then.",
        ),
        link=None,
        file=place.file,
        range=place.range,
        count=1,
        compiles=(),
        related=(),
    )


DETECTORS = (Detector("method-taken", detect_method, hook=_methods),)
