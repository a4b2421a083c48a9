"""Specialization: a size or number that could have been dynamic became a constant of the compiled code."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_expression
from irscope.findings.recompiling.words import rate_as_tensor
from irscope.ir.guard_text import readable_size
from irscope.protocol import Finding, RecompilationFacts, Related, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="specialization",
    label="Specialization",
    short=("specialization", "specializations"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    order=40,
)


def detect(moment: Moment) -> Iterator[Finding]:
    """From ``symbolic_shape_specialization``: a symbol was fixed while this expression was traced.

    Once for each compile: where Dynamo begins again, as for a number that AOTAutograd cannot make a tensor, it is fixed
    again.
    """
    facts = moment.record.facts
    value = str(facts.get("value", "?"))
    sources = [readable_size(str(source)) for source in facts.get("sources") or ()]
    fixed, before = (value, *sources, facts.get("symbol")), moment.known.notes.setdefault(KIND.id, {})
    if before.setdefault((moment.record.compile, fixed), moment.record.attempt) != moment.record.attempt:
        return
    subject = f"`{sources[0]}`" if sources else f"the symbol {facts.get('symbol', '?')}"
    finding = at_expression(
        moment,
        kind=KIND.id,
        code="specialize-zero-one" if value in ("0", "1") else "specialize-value",
        message=f"{subject} was fixed to {value} here: the compiled code is for this value only.",
        explanation=f"A condition or an operation on this line is true only for {value}, so PyTorch guards on it. Any other value compiles the function again. PyTorch's reason: {facts.get('reason') or 'none given'}.",
        hints=rate_as_tensor(sources[0] if sources else "")
        or (
            f"Keep the value out of Python conditions, so that `{sources[0] if sources else 'it'}` can stay dynamic. `torch._check(...)` states a range without fixing the value.",
            "If one value is all you ever use, pass it as a constant and drop `dynamic=True` or `mark_dynamic`.",
        ),
        severity=KIND.severity,
    )
    if finding is None:
        return
    if (where := _recompilation(moment, sources)) is not None:
        finding = dataclasses.replace(finding, follows=where)
        yield dataclasses.replace(finding, count=0)  # that of an earlier compile, which was not compiled again yet
    yield finding


def _recompilation(moment: Moment, sources: list[str]) -> Related | None:
    """The recompilation for the number that is fixed: one cause is one finding."""
    for known in moment.known.findings:
        of_number = isinstance(known.facts, RecompilationFacts) and known.facts.source in sources
        if of_number and moment.record.compile in known.compiles:
            return Related(known.file, known.range, "the recompilation for this number")
    return None


DETECTORS = (Detector("symbolic_shape_specialization", detect),)
