"""Findings, and how steps of a symbolic trace ended, as facts for expressions and variables."""

from __future__ import annotations

from typing import Any

from irscope.protocol import Finding
from irscope.symbolic.trace import Outcome

from irscope_server.dap.base.expressions import Facts

_MEANS = {
    "graph-break": "Dynamo cannot trace this: the graph ends before it",
    "restart": "Dynamo gives up this attempt and restarts",
    "compiled": "the function returned: the graph is complete",
    "exception": "an exception leaves this function",
    "error": "an error ended this attempt",
}


def outcome_facts(outcome: Outcome, finding: Finding | None) -> Facts:
    """How a step ended, and what can be done about it."""
    facts: dict[str, Any] = {}
    if outcome.text and outcome.kind != "restart":
        facts["reason"] = outcome.text
    if finding is not None:
        facts["id"] = finding.code
        facts["message"] = finding.message
        facts["explanation"] = finding.explanation
        facts["what_to_do"] = list(finding.hints)
        facts["link"] = finding.link
        facts["finding"] = lambda: finding_facts(finding)
    facts["means"] = _MEANS.get(outcome.kind, outcome.kind)
    return Facts(outcome.kind, outcome.kind, facts)


def finding_facts(finding: Finding) -> Facts:
    """A finding as facts; ``line`` is 1-based, ``seconds`` is what the finding cost."""
    start = finding.range.start
    return Facts(
        "finding",
        finding.message,
        {
            "kind": finding.kind,
            "code": finding.code,
            "severity": finding.severity.value,
            "message": finding.message,
            "explanation": finding.explanation,
            "hints": list(finding.hints),
            "link": finding.link,
            "file": finding.file,
            "line": start.line,
            "count": finding.count,
            "compiles": list(finding.compiles),
            "seconds": finding.cost.seconds,
        },
    )
