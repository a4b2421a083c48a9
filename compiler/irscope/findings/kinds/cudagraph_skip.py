"""CUDA-graph skip: ``mode="reduce-overhead"`` was asked for, and this function runs without CUDA graphs."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

from irscope.events.listening import LogHandler
from irscope.findings import signals
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_function, at_origin
from irscope.protocol import Finding, Origin, Severity
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind

KIND = FindingKind(
    id="cudagraph-skip",
    label="Cudagraph skip",
    short=("cudagraph skip", "cudagraph skips"),
    lanes=DEEP_ONLY,
    severity=Severity.WARNING,
    filter_label="CUDA graph skips",
    order=90,
)
_PREFIX = re.compile(r"(?:skipping cudagraphs? due to\s*)+")
"""In the singular of a function that was recorded again too often (torch 2.13); twice of tensors on the CPU (torch 2.11)."""
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_HINTS = {
    "cpu ops": "Create or move that tensor on the GPU, outside of the compiled function.",
    "cpu device": "Move that tensor to the GPU before the call; CUDA graphs cannot contain CPU work.",
    "mutated inputs": "Do not write into arguments in place; return the new value, or mark the input static with `torch._dynamo.mark_static_address`.",
    "dynamic shapes": "Pad to few sizes, or set `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = False` to record one graph per size.",
    "incompatible op": "Move the operation that cannot be recorded (it syncs or runs on the CPU) out of the compiled region.",
    "re-recording limit": "Give the function the same tensors on each call: copy what changes into buffers that are kept, or raise `torch._inductor.config.triton.cudagraph_unexpected_rerecord_limit`.",
    "multiple devices": "Keep one compiled region on one device.",
}


def detect(moment: Moment) -> Iterator[Finding]:
    """From ``cudagraph_skip_reason`` of the compile's metrics."""
    reason = str(moment.record.facts.get("cudagraph_skip_reason") or "")
    if reason:
        yield from from_reason(moment, reason)


def predicted(moment: Moment, target: str, reason: str) -> Iterator[Finding]:
    """Makes it from what Inductor decides for a device that is not here."""
    for finding in from_reason(moment, reason, "This would run", "cudagraph-skip-predicted"):
        yield dataclasses.replace(finding, targets=(target,))


def from_reason(
    moment: Moment, reason: str, subject: str = "This runs", code: str = "cudagraph-skip"
) -> Iterator[Finding]:
    """The finding of PyTorch's own text; it is at the line that the text names, else at the function.

    Some skips are known only when the code runs for the first time; PyTorch then writes a warning (`SkipHandler`).
    """
    what = first_line(_PREFIX.sub("", reason, count=1).strip())
    facts: dict[str, Any] = {
        "kind": KIND.id,
        "code": code,
        "message": f"{subject} without CUDA graphs: {what}.",
        "explanation": reason.strip(),
        "hints": tuple(hint for mark, hint in _HINTS.items() if mark in reason.lower()),
        "link": "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
        "severity": KIND.severity,
    }
    frames = [Origin(match["file"], int(match["line"])) for match in _FRAME.finditer(reason)]
    if mine := [frame for frame in frames if is_user_file(frame.file)]:
        yield at_origin(moment, mine[-1], **facts)
    elif (finding := at_function(moment, **facts)) is not None:
        yield finding


class SkipHandler(LogHandler):
    """Hears of skips in the log, if PyTorch warns of them (torch 2.9 to 2.13)."""

    LOGGER = "torch._inductor.cudagraph_utils.__cudagraphs"

    def __init__(self, receive: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the text of a record that reports a skip; ignore all others."""
        text = record.getMessage()
        if _PREFIX.search(text):
            self._receive(text)


def first_line(text: str) -> str:
    """The reason in PyTorch's message, without its stack trace and closing punctuation."""
    return text.split("\n", 1)[0].split(". Found from", 1)[0].rstrip(". :")


DETECTORS = (
    Detector("compilation_metrics", detect),
    Detector("bwd_compilation_metrics", detect),
    Detector("cudagraph-skip", from_reason, handler=SkipHandler),
    Detector(signals.CUDA_GRAPH_PREDICTED, predicted),
)
