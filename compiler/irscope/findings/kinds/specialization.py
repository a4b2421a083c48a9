"""Specialization: a size or number that could have been dynamic became a constant of the compiled code."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_expression
from irscope.findings.recompiling.words import rate_as_tensor
from irscope.internals.loaded_artifacts import saving_hook
from irscope.ir.artifacts.contents import ArtifactError
from irscope.ir.artifacts.kinds import kind_of, open_artifact
from irscope.ir.artifacts.portability import NOT_PORTABLE, made_constants
from irscope.ir.guard_text import is_nameless, readable_size
from irscope.protocol import Finding, RecompilationFacts, Related, Severity
from irscope.usercode.source import range_of_node
from irscope.usercode.user_files import is_user_file
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
    if (sources and all(map(is_nameless, sources))) or re.fullmatch(r"u\d+", str(facts.get("symbol"))):
        return  # a backend's own, or of data, which no guard looks at: no other value leads to a recompilation
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
            f"Keep the value out of Python conditions, so that {f'`{sources[0]}`' if sources else 'it'} can stay dynamic. `torch._check(...)` states a range without fixing the value.",
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


def detect_saved(_moment: Moment, path: str) -> Iterator[Finding]:
    """What a function that was just saved has as a constant and that is another elsewhere."""
    try:
        kind = kind_of(path)
        artifact = open_artifact(path, kind) if kind is not None else None
    except (ArtifactError, OSError):
        return
    for file, module, node, what, hint in made_constants(artifact) if artifact is not None else ():
        # The function of a module is PyTorch's own, beside which the user's files are not.
        file = file or str(getattr(sys.modules.get(module), "__file__", None) or "")
        if not is_user_file(file):
            continue
        yield Finding(
            kind=KIND.id,
            code=NOT_PORTABLE,
            severity=KIND.severity,
            message=what,
            explanation="By default no guard of a saved function looks at it: where it is another, the function computes with the old value, and nothing says so.",
            hints=(hint,),
            file=file,
            range=range_of_node(file, node),
            count=1,
            compiles=(),
            related=(),
            link=None,
        )


DETECTORS = (
    Detector("symbolic_shape_specialization", detect),
    Detector("function-saved", detect_saved, saving_hook),
)
