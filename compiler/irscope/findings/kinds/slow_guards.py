"""Slow guards: what is checked before every call of compiled code takes long."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.internals import guard_costs as guardcosts
from irscope.internals.module_compile import is_in_plain_module
from irscope.ir.guards import latency_microseconds
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.units import count, duration

KIND = FindingKind(
    id="slow-guards",
    label="Slow guards",
    short=("slow guard", "slow guards"),
    lanes=FAST_AND_DEEP,
    severity=Severity.HINT,
    filter_label="Slow guards",
    order=150,
)
_GUARD = re.compile(r"\+- [A-Z_]+: ")
_ITEM = re.compile(r"\+- EQUALS_MATCH: [LG]\[[^ ]*?\.(?P<name>\w+)\[\d+\] == ")
"""A guard on a number in a list that an object has as an attribute."""
_MOST_GUARDS = 0.5
_MANY_GUARDS = 1000
"""On the numbers of lists of one name: a finding, if they are also most of the guards, however fast the machine is."""
# PyTorch measures one single check with cold caches, and on a slow or busy machine that takes milliseconds for eighty
# guards.  With warm caches thousands take a thirtieth of what they take with cold ones, so this much must be left.
_WARM_SHARE = 0.1


def threshold_microseconds() -> float:
    """Above which the guards of one compile are a finding; the variable IRSCOPE_SLOW_GUARDS_US sets it."""
    try:
        return float(os.environ.get("IRSCOPE_SLOW_GUARDS_US", ""))
    except ValueError:
        return 1000.0


def detect(moment: Moment) -> Iterator[Finding]:
    """From the guards' own text, whose last line is their latency as PyTorch measured it, and from checking them again."""
    text = moment.record.payload
    latency = latency_microseconds(text)
    threshold, guards = threshold_microseconds(), len(_GUARD.findall(text))
    name, items = next(iter(Counter(match["name"] for match in _ITEM.finditer(text)).most_common(1)), ("", 0))
    in_lists = items if items > guards * _MOST_GUARDS else 0
    if latency is None or (latency < threshold and in_lists < _MANY_GUARDS):
        return
    warm = guardcosts.warm_microseconds()
    if warm is None or (warm < threshold * _WARM_SHARE and in_lists < _MANY_GUARDS):
        return
    finding = at_function(
        moment,
        kind=KIND.id,
        code="slow-guards",
        message=f"{count(guards, 'guard')} are checked before every call, which takes {duration(warm / 1e6)}, and {duration(latency / 1e6)} with cold caches.",
        explanation="Before compiled code runs, Python checks that everything it was compiled for still holds. Many parameters, modules and globals make many checks.",
        hints=(
            *([_of_lists(name, in_lists)] if in_lists else []),
            *_larger_region(),
            "`torch.compile(..., options={'guard_filter_fn': torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe})` drops guards on modules that you promise not to change.",
        ),
        severity=KIND.severity,
    )
    if finding is not None:
        yield finding


def _of_lists(name: str, items: int) -> str:
    """What to make of the numbers of lists of one name, where most guards are on them."""
    return f"{items:,} of these are on the numbers in lists named `{name}`: each is a constant of the compiled code. Make each list a tensor (in a module by `self.register_buffer`), or compute once, outside of the compiled function, what it needs of the list."


def _larger_region() -> Iterator[str]:
    """Where a module that is not compiled calls what is compiled, as a model does with its layers."""
    if is_in_plain_module():
        yield "Compile a larger region once (the whole model rather than each layer), so that fewer guarded entries are made."


DETECTORS = (Detector("dynamo_cpp_guards_str", detect),)
