"""What is found while a program is exported."""

from __future__ import annotations

from irscope.protocol import Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

EXPORT_ERROR = FindingKind(
    id="export-error",
    label="Export error",
    short=("export error", "export errors"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    stops_debugger=True,
)
DRAFT_EXPORT_ISSUE = FindingKind(
    id="draft-export",
    label="Issue of draft export",
    short=("draft export issue", "draft export issues"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    filter_label="Issues of draft export",
)
UNSUPPORTED_OPERATOR = FindingKind(
    id="unsupported-operator",
    label="Unsupported operator",
    short=("unsupported operator", "unsupported operators"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    newest_speaks=True,
)
"""A finding of every pipeline whose compiler takes an exported program but not all operators in it."""
