"""What Dynamo alone makes of a script, compared with the script without compile."""

from __future__ import annotations

from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Prover, Status, compared
from irscope.protocol import OutcomeKind
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class DynamoComparison:
    """What was compared, and what differs.

    Args:
        checks: What was compared.
        difference: What differs, in words; empty if nothing does.  ``file`` and ``line``: where that program is
            written.
        why_not: Why it could not be compared.
    """

    checks: tuple[str, ...] = ()
    difference: str = ""
    file: str = ""
    line: int = 0
    why_not: str = ""


def compare_dynamo(spec: RunSpec) -> DynamoComparison:
    """Runs the script without compile, and compiled with eager mode running Dynamo's graphs: what differs, Dynamo has made."""
    with Prover(spec, aot=False) as prover:
        eager = prover.run({}, without_compile=True)
        if eager.outcome.kind is not OutcomeKind.COMPLETED:
            return DynamoComparison(why_not=f"Without compile the script does not end well: {eager.outcome.message}")
        trial = prover.run({})
        if trial.outcome.kind is not OutcomeKind.COMPLETED:
            return DynamoComparison(why_not=f"The script does not end well: {trial.outcome.message}")
    proof = compared(eager, trial)
    if proof.status is Status.DISPROVEN and trial.evidence is not None:
        found = trial.evidence
        return DynamoComparison(proof.checks, found.differences[0], found.file, found.line)
    return DynamoComparison(proof.checks, why_not=proof.reason)
