"""Inductor's own performance hints, which it writes to a log that is off by default."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator

from irscope.events.listening import listen
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.internals.hooks import Hook
from irscope.internals.inductor_hooks import hints_hook
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind

KIND = FindingKind(
    id="performance-hint",
    label="Performance hint",
    short=("hint", "hints"),
    lanes=DEEP_ONLY,
    severity=Severity.HINT,
    order=140,
)
# The artifact loggers of ``TORCH_LOGS=perf_hints`` (torch 2.9 to 2.13).  They are off by default and do not propagate,
# so listening to them prints nothing.
LOGGERS = tuple(
    f"torch._inductor.{module}.__perf_hints" for module in ("compile_fx", "codegen.simd", "codegen.triton", "scheduler")
)
# Said of every graph on a CPU; fallbacks are their own kind.
_NOISE = ("Skip comprehensive padding on CPU", "Using FallbackKernel")


class HintHandler(logging.Handler):
    """Receives the text of each hint."""

    def __init__(self, receive: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the text of a record, except for known noise."""
        text = record.getMessage()
        if not text.startswith(_NOISE):
            self._receive(text)

    def attach(self) -> Callable[[], None]:
        """Listens to every logger of hints; returns what stops it."""
        stops = [listen(self, name) for name in LOGGERS if _may_log(name)]

        def detach() -> None:
            for stop in stops:
                stop()

        return detach


def _may_log(logger: str) -> bool:
    """Whether a logger exists or may still be made: to ask for one that a loaded module lacks would leave it behind."""
    return logger in logging.Logger.manager.loggerDict or logger.rpartition(".")[0] not in sys.modules


def hook(receive: Callable[[str], None]) -> Hook:
    """Sees the hints."""
    return hints_hook(HintHandler(receive).attach)


def detect(moment: Moment, text: str) -> Iterator[Finding]:
    """The hint, at the function whose kernels are being generated."""
    finding = at_function(
        moment,
        kind=KIND.id,
        code="performance-hint",
        message=f"Inductor: {text.strip().split(chr(10), 1)[0]}",
        explanation=text.strip(),
        severity=KIND.severity,
    )
    if finding is not None:
        yield finding


DETECTORS = (Detector("performance-hint", detect, hook=hook),)
