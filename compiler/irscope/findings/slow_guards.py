"""Slow guards: what is checked before every call of compiled code takes long."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from irscope.capture import guardcosts
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.protocol import Finding, Severity

KIND = "slow-guards"
EVENTS = ("dynamo_cpp_guards_str",)
_LATENCY = re.compile(r"^Guard latency = (?P<microseconds>[\d.]+) us\s*$", re.MULTILINE)
_GUARD = re.compile(r"\+- [A-Z_]+: ")
# PyTorch measures one single check with cold caches, and on a slow or busy machine that takes milliseconds for eighty
# guards.  With warm caches thousands take a thirtieth of what they take with cold ones, so this much must be left.
_WARM_SHARE = 0.1


def threshold_microseconds() -> float:
    """Above which the guards of one compile are a finding; the variable IRSCOPE_SLOW_GUARDS_US sets it."""
    try:
        return float(os.environ.get("IRSCOPE_SLOW_GUARDS_US", ""))
    except ValueError:
        return 1000.0


def latency_microseconds(text: str) -> float | None:
    """What PyTorch measured for one check of all guards of a compile; nothing where the text does not tell."""
    at = text.rfind("Guard latency = ")  # in the last line of megabytes
    match = _LATENCY.match(text, at) if at >= 0 else None
    return float(match["microseconds"]) if match else None


def _duration(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.0f} µs"
    return f"{microseconds / 1000:.{1 if microseconds < 10_000 else 0}f} ms"


def detect(moment: Moment) -> Iterator[Finding]:
    """From the guards' own text, whose last line is their latency as PyTorch measured it, and from checking them again."""
    text = moment.record.payload
    latency = latency_microseconds(text)
    threshold, guards = threshold_microseconds(), len(_GUARD.findall(text))
    if latency is None or latency < threshold:
        return
    warm = guardcosts.warm_microseconds()
    if warm < threshold * _WARM_SHARE:
        return
    finding = at_function(
        moment,
        kind=KIND,
        code="slow-guards",
        message=f"{guards:,} guards are checked before every call, which takes {_duration(warm)}, and {_duration(latency)} with cold caches.",
        explanation="Before compiled code runs, Python checks that everything it was compiled for still holds. Many parameters, modules and globals make many checks.",
        hints=(
            "Compile a larger region once (the whole model rather than each layer), so that fewer guarded entries are made.",
            "`torch.compile(..., options={'guard_filter_fn': torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe})` drops guards on modules that you promise not to change.",
        ),
        severity=Severity.HINT,
    )
    if finding is not None:
        yield finding
