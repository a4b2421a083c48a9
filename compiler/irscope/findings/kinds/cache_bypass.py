"""Cache bypass: a graph that PyTorch's compile caches cannot keep, so each new process compiles it again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.kinds.cache_miss import KIND
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.internals.operators import is_pytorchs_operator
from irscope.protocol import Finding

EVENTS = {"fx_graph_cache_bypass": "FX graph cache", "aotautograd_cache_bypass": "AOTAutograd cache"}
"""By event the cache that cannot keep a graph."""

_TARGET = re.compile(r"Unsupported call_function target (?:<function )?(?P<name>\w+)")
_REGISTERED = "Register custom operators with `torch.library.custom_op`."


def detect(moment: Moment) -> Iterator[Finding]:
    """From the cache's own event.  A plain miss is not a finding: the first run of anything misses."""
    try:
        facts = json.loads(moment.record.payload)
    except ValueError:
        facts = {}
    reason = str(facts.get("cache_bypass_reason") or "PyTorch gives no reason").strip()
    name = EVENTS[moment.record.event]
    target = _TARGET.search(reason)
    finding = at_function(
        moment,
        kind=KIND.id,
        code=moment.record.event.replace("_", "-"),
        message=f"The {name} cannot keep this function: {first_line(reason)}",
        explanation=f"Every new process compiles it from scratch. The reason that PyTorch gives: {reason}",
        hints=() if target is None or is_pytorchs_operator(target["name"]) else (_REGISTERED,),
        severity=KIND.severity,
    )
    if finding is not None:
        yield finding


def first_line(text: str) -> str:
    """The first line of PyTorch's message, ending with one full stop."""
    line = text.split("\n", 1)[0].rstrip(". ")
    return line + "."


DETECTORS = tuple(Detector(event, detect) for event in EVENTS)
