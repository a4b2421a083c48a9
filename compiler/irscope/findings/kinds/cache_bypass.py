"""Cache bypass: a graph that PyTorch's compile caches cannot keep, so each new process compiles it again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.kinds.cache_miss import KIND
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.internals.operators import is_higher_order_name, is_pytorchs_operator
from irscope.protocol import Finding

EVENTS = {"fx_graph_cache_bypass": "FX graph cache", "aotautograd_cache_bypass": "AOTAutograd cache"}
"""By event the cache that cannot keep a graph."""

_TARGET = re.compile(r"Unsupported call_function target (?:<function )?(?P<name>\w+)")
_HIGHER_ORDER = re.compile(r"HigherOrderOperator: (?P<name>\w+)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_REGISTERED = "Register custom operators with `torch.library.custom_op`."
_NOT_KEPT = "No setting changes this. Functions that do not use `{}` can be kept if they are compiled by themselves."


def detect(moment: Moment) -> Iterator[Finding]:
    """From the cache's own event.  A plain miss is not a finding: the first run of anything misses."""
    try:
        facts = json.loads(moment.record.payload)
    except ValueError:
        facts = {}
    reason = _ADDRESS.sub("", str(facts.get("cache_bypass_reason") or "PyTorch gives no reason"))
    reason = "\n".join(line.strip() for line in reason.splitlines()).strip(". \n")
    name = EVENTS[moment.record.event]
    finding = at_function(
        moment,
        kind=KIND.id,
        code=moment.record.event.replace("_", "-"),
        message=f"The {name} cannot keep this function: {first_line(reason)}",
        explanation=f"Every new process compiles it from scratch. The reason that PyTorch gives: {reason}.",
        hints=_hints(reason),
        severity=KIND.severity,
    )
    if finding is not None:
        yield finding


def _hints(reason: str) -> tuple[str, ...]:
    target = _HIGHER_ORDER.search(reason) or _TARGET.search(reason)
    if target is None:
        return ()
    if is_higher_order_name(target["name"]):
        return (_NOT_KEPT.format(target["name"]),)
    return () if is_pytorchs_operator(target["name"]) else (_REGISTERED,)


def first_line(text: str) -> str:
    """The first line of PyTorch's message, ending with one full stop."""
    line = text.split("\n", 1)[0].rstrip(". ")
    return line + "."


DETECTORS = tuple(Detector(event, detect) for event in EVENTS)
