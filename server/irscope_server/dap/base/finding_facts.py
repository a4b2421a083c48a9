"""Findings, and how steps of a symbolic trace ended, as facts for expressions and variables."""

from __future__ import annotations

import os
from typing import Any

from irscope.protocol import Finding
from irscope.symbolic.trace import Outcome
from irscope.values.facts import Facts

_MEANS = {
    "graph-break": "Dynamo cannot trace this: the graph ends before it",
    "restart": "Dynamo gives up this attempt and restarts",
    "compiled": "the function returned: the graph is complete",
    "exception": "an exception leaves this function",
    "error": "an error ended this attempt",
}


def outcome_facts(outcome: Outcome, finding: Finding | None) -> Facts:
    """How a step ended, and the facts of its finding: what can be done about it."""
    facts: dict[str, Any] = {}
    if outcome.text and outcome.kind != "restart":
        facts["reason"] = outcome.text
    facts["means"] = _MEANS.get(outcome.kind, outcome.kind)
    if finding is not None:
        facts |= _facts_of(finding)
    return Facts(outcome.kind, outcome.kind, facts)


def finding_facts(finding: Finding) -> Facts:
    """A finding as facts."""
    place = f"{os.path.basename(finding.file)}:{finding.range.start.line}"
    return Facts("finding", finding.message, _facts_of(finding), f"{finding.kind} at {place}")


def _facts_of(finding: Finding) -> dict[str, Any]:
    """Under the names of docs/DEBUGGER.md; ``line`` is 1-based, ``seconds`` is what the finding cost."""
    return {
        "kind": finding.kind,
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "explanation": finding.explanation,
        "hints": list(finding.hints),
        "link": finding.link,
        "file": finding.file,
        "line": finding.range.start.line,
        "count": finding.count,
        "compiles": list(finding.compiles),
        "seconds": finding.cost.seconds,
    }
