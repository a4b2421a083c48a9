"""CUDA-graph skip: ``mode="reduce-overhead"`` was asked for, and this function runs without CUDA graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from irscope.findings.moment import Moment
from irscope.findings.places import at_function, at_origin
from irscope.protocol import Finding, Origin, Severity
from irscope.usercode import is_user_file

KIND = "cudagraph-skip"
EVENTS = ("compilation_metrics", "bwd_compilation_metrics")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_HINTS = {
    "cpu device": "Move that tensor to the GPU before the call; CUDA graphs can hold no work of the CPU.",
    "mutated inputs": "Do not write into arguments in place; return the new value, or mark the input static with `torch._dynamo.mark_static_address`.",
    "dynamic shapes": "Pad to few sizes, or set `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = False` to record one graph a size.",
    "incompatible op": "Move the operation that cannot be recorded (it syncs or runs on the CPU) out of the compiled region.",
    "multiple devices": "Keep one compiled region on one device.",
}


def detect(moment: Moment) -> Iterator[Finding]:
    """From ``cudagraph_skip_reason`` of the compile's metrics."""
    reason = str(moment.record.facts.get("cudagraph_skip_reason") or "")
    if not reason:
        return
    what = first_line(reason.removeprefix("skipping cudagraphs due to").strip())
    facts: dict[str, Any] = {
        "kind": KIND,
        "code": "cudagraph-skip",
        "message": f"This runs without CUDA graphs: {what}.",
        "explanation": reason,
        "hints": tuple(hint for mark, hint in _HINTS.items() if mark in reason.lower()),
        "link": "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
        "severity": Severity.WARNING,
    }
    frames = [Origin(match["file"], int(match["line"])) for match in _FRAME.finditer(reason)]
    if mine := [frame for frame in frames if is_user_file(frame.file)]:
        yield at_origin(moment, mine[-1], **facts)
    elif (finding := at_function(moment, **facts)) is not None:
        yield finding


def first_line(text: str) -> str:
    return text.split("\n", 1)[0].split(". Found from", 1)[0].rstrip(". :")
