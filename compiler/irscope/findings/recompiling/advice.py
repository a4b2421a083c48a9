"""What to do about a recompilation, and whether more of them will come.

`WORDS` has a rule for each code.  What a rule promises is tested by following it: tests/worker/findings/hint_cases.py.
"""

from __future__ import annotations

from collections.abc import Callable

from irscope.findings.recompiling import properties, sizes, values
from irscope.findings.recompiling.facts import Facts
from irscope.findings.recompiling.words import Words

WORDS: dict[str, Callable[[Facts], Words]] = {
    "recompile-size": sizes.size,
    "recompile-condition": values.condition,
    "recompile-value": values.value,
    "recompile-dtype": properties.dtype_changed,
    "recompile-stride": properties.stride_changed,
    "recompile-dispatch": properties.dispatch_changed,
    "recompile-requires-grad": properties.requires_grad_changed,
    "recompile-rank": properties.rank_changed,
    "recompile-device": properties.device_changed,
    "recompile-training-mode": properties.training_changed,
    "recompile-global-state": properties.global_state_changed,
    "recompile-type": properties.type_changed,
    "recompile-object": properties.object_changed,
    "recompile-aliasing": properties.aliasing_changed,
    "recompile-backend": properties.backend_changed,
}


def words_for(facts: Facts) -> Words:
    """The words for a recompilation."""
    rule = WORDS.get(facts.guard.code)
    return rule(facts) if rule is not None else Words("", ())
