"""Whether a script with dynamic sizes is faster when each size has its own compile.

Dynamic sizes serve all sizes with one compile, but its code knows less.  Where few sizes occur, the trial of the changed
text shows that the results are the same, and the whole pipeline is timed with both, in turns.
"""

from __future__ import annotations

from collections import Counter

from irscope.driver.driver import RunSpec
from irscope.driver.trials.gains import MeasuredGain, measure
from irscope.driver.trials.proving import Proof, Prover, Status
from irscope.fixing.rules.sizes import static_sizes
from irscope.fixing.texts import applied
from irscope.protocol import Finding, Fix
from irscope.vocabulary.records import dataclass

MOST_SIZES = 4
"""Compiles of one function that are few."""
_OF_SIZES = ("recompile-size", "recompile-condition")


@dataclass(frozen=True)
class StaticSizes:
    """The change, what its trial has shown, and what was measured; ``why_not`` if it is not worth it."""

    fix: Fix
    file: str
    proof: Proof
    gain: MeasuredGain | None
    why_not: str


def measured_static_sizes(prover: Prover, spec: RunSpec, file: str) -> StaticSizes | None:
    """None if the sizes of a script, an absolute path, are not dynamic."""
    assert prover.original is not None
    by_itself = any(map(_is_of_sizes, prover.original.findings))
    text = prover.text_of(file)
    fix = static_sizes(text, by_itself)
    if fix is None or not fix.edits:
        return None
    changed = {file: applied(text, fix.edits)}
    proof, trial = prover.prove(changed, None, may_come=_is_of_sizes)
    functions = ((compile.file, compile.line, compile.function) for compile in trial.compiles if compile.graph_ops)
    sizes = max(Counter(functions).values(), default=0)
    why_not = "" if sizes <= MOST_SIZES else f"One function would have {sizes} compiles."
    if proof.status is not Status.VERIFIED or why_not:
        return StaticSizes(fix, file, proof, None, proof.reason or why_not)
    gain = measure(spec, changed)
    return StaticSizes(fix, file, proof, gain, _why_not(gain))


def _is_of_sizes(finding: Finding) -> bool:
    return finding.code in _OF_SIZES


def _why_not(gain: MeasuredGain) -> str:
    if gain.before.call is None or gain.after.call is None:
        return gain.before.why or gain.after.why or "Calls were not timed."
    if not gain.is_significant:
        return "The times of both overlap: no difference is shown."
    return "It is not faster." if gain.is_slower else ""
