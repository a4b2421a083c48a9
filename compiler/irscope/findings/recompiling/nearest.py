"""Which older compile of a function is the nearest to a call that fits none of them.

PyTorch names the first guard that fails of each, the newest compile's first.  The cause of a recompilation is the smallest
change with which one of them would have fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.findings.recompiling.now import value_of
from irscope.internals.dynamo_frames import variables_of_the_call
from irscope.internals.failing_guards import failing_guards
from irscope.ir.guard_text import FailedGuard, parse_failed_guard, readable


def nearest(reasons: Sequence[FailedGuard]) -> tuple[int, tuple[FailedGuard, ...]]:
    """The index of the nearest compile, the newest of several, and what else fails of it, on the stack of the record.

    Args:
        reasons: The first guard that fails of each older compile, the newest first; not empty.
    """
    variables = next(iter(variables_of_the_call()), {})
    failing = [
        [parse_failed_guard(text) for text in texts]
        for texts in failing_guards(variables, lambda source: value_of(readable(source)))
    ]
    if len(failing) != len(reasons):
        return 0, ()
    index = min(range(len(failing)), key=lambda i: _distance(failing[i] or [reasons[i]]))
    first = reasons[index]
    return index, tuple(guard for guard in failing[index] if (guard.code, guard.source) != (first.code, first.source))


def _distance(guards: Iterable[FailedGuard]) -> tuple[int, int]:
    """How many things changed, and how many of them are more than a value or a size: a dtype, a device, ….

    What changed in the same way in several tensors is one.
    """
    of_tensors = {(guard.code, guard.what): guard.changes for guard in guards if guard.text.startswith("tensor ")}
    others = {guard.text: guard.changes for guard in guards if not guard.text.startswith("tensor ")}
    return sum(of_tensors.values()) + sum(others.values()), sum(code != "recompile-size" for code, _ in of_tensors)
