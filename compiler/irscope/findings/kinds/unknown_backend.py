"""Unknown backend: ``torch.compile`` got a name that is not registered."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from irscope.events.stack import innermost_user, live_places, related_to
from irscope.findings.detector import Detector
from irscope.findings.kinds.compile_error import KIND
from irscope.findings.moment import Moment
from irscope.internals.backends import registered_backends
from irscope.internals.unrecorded import unknown_backends
from irscope.protocol import Finding

_LISTED = 8


def detect(_moment: Moment, name: str) -> Iterator[Finding]:
    """The finding of a name that PyTorch has refused."""
    if (finding := make(name)) is not None:
        yield finding


def make(name: str) -> Finding | None:
    """The finding at the call that names the backend."""
    places = live_places()
    at = innermost_user(places)
    if at is None:
        return None
    known = registered_backends()
    near = difflib.get_close_matches(name, known, 1)
    others = [other for other in known if other not in near][:_LISTED]
    return Finding(
        kind=KIND.id,
        code="InvalidBackend",
        severity=KIND.severity,
        message=f"Unknown backend: `{name}`." + (f" Did you mean `{near[0]}`?" if near else ""),
        explanation="Backends are registered by PyTorch and by installed packages (entry points `torch_dynamo_backends`).",
        hints=(
            f"Available: {', '.join(f'`{other}`' for other in [*near, *others])}.",
            "Install the package that provides it into this environment, or pass the compiler's function itself.",
        ),
        link="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(),
        related=related_to(places, at),
    )


DETECTORS = (Detector("unknown-backend", detect, hook=unknown_backends),)
