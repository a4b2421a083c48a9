"""Findings that say the same as another one: of a size that was marked as dynamic and is fixed, one is enough."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.protocol import Finding

_SPECIALIZATION, _VIOLATION = "specialization", "ConstraintViolationError"


def without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without the specializations that a compile error at the same place is about."""
    findings = list(findings)
    errors = [finding for finding in findings if finding.code == _VIOLATION]
    return [f for f in findings if f.kind != _SPECIALIZATION or not any(_is_of(f, error) for error in errors)]


def fixed_at(error: Finding, findings: Iterable[Finding]) -> Finding | None:
    """The specialization that a constraint violation is about; its range is the exact one."""
    if error.code != _VIOLATION:
        return None
    return next((finding for finding in findings if finding.kind == _SPECIALIZATION and _is_of(finding, error)), None)


def _is_of(specialization: Finding, error: Finding) -> bool:
    same_line = specialization.range.start.line == error.range.start.line and specialization.file == error.file
    return same_line and set(specialization.compiles) <= set(error.compiles)
