"""What ``irscope check`` found, as data; it is also its JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass

from irscope.findings.verdicts import Measured, Verdict
from irscope.protocol import Finding, Report


@dataclass(frozen=True)
class ScriptCheck:
    """The check of one script."""

    name: str
    """As it was typed."""
    verdict: Verdict
    report: Report
    """With the findings that no comment, severity or baseline hides."""
    failing: tuple[int, ...]
    """Places in ``report.findings``, from 0, of those that fail the check."""
    bounds: tuple[Measured, ...]

    @property
    def failing_findings(self) -> list[Finding]:
        """The findings that fail the check."""
        return [self.report.findings[at] for at in self.failing]

    @property
    def exceeded(self) -> list[Measured]:
        """The numbers that are over their bound."""
        return [each for each in self.bounds if each.exceeded]

    @property
    def trouble(self) -> str:
        """What kept the script from its end, in words; empty if nothing did."""
        return self.report.outcome.message if self.verdict in (Verdict.SCRIPT_FAILED, Verdict.ENVIRONMENT) else ""


@dataclass(frozen=True)
class Check:
    """The check of all scripts."""

    schema: int
    verdict: Verdict
    """The worst one of the scripts."""
    exit_code: int
    scripts: tuple[ScriptCheck, ...]


def shown_path(file: str) -> str:
    """The path as a repository has it: relative to the working folder if it is below it, with slashes."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file.replace(os.sep, "/")
    return (file if relative.startswith(os.pardir) else relative).replace(os.sep, "/")


def remedy_of(finding: Finding) -> str:
    """The symbolic sizes that a finding names, and what to do about it, the best advice first; empty without any."""
    return "\n".join([*(symbol.line() for symbol in finding.symbols), *(f"→ {hint}" for hint in finding.hints)])
