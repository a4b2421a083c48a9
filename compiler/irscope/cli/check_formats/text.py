"""A check for people: the findings that fail with their source, then a line for each script."""

from __future__ import annotations

import sys

from irscope.cli.checked import Check, ScriptCheck
from irscope.cli.report import finding_lines
from irscope.cli.text import Paint
from irscope.findings.registry import kind_of
from irscope.findings.verdicts import BOUNDS, Verdict
from irscope.protocol import causes_only
from irscope.vocabulary.units import count, duration
from irscope.vocabulary.visible import printable

_STYLE = {Verdict.CLEAN: "green", Verdict.FINDINGS: "yellow", Verdict.SCRIPT_FAILED: "red", Verdict.ENVIRONMENT: "red"}


def written(check: Check) -> str:
    """The text, with colours where standard output shows them."""
    paint = Paint(sys.stdout)
    lines: list[str] = []
    for script in check.scripts:
        for finding in causes_only(script.failing_findings):
            lines += [*finding_lines(finding, paint, script.report.members), ""]
    for script in check.scripts:
        lines += _summary(script, paint)
    if len(check.scripts) > 1:
        bad = sum(script.verdict is not Verdict.CLEAN for script in check.scripts)
        said = f"{bad} of {count(len(check.scripts), 'script')} failed the check" if bad else "all scripts are clean"
        lines.append(paint(said, _STYLE[check.verdict], "bold"))
    return "\n".join(lines) + "\n"


def _summary(script: ScriptCheck, paint: Paint) -> list[str]:
    report = script.report
    head = f"{paint(printable(script.name), 'bold')}: {paint(script.verdict.value, _STYLE[script.verdict], 'bold')}"
    if script.verdict is Verdict.ENVIRONMENT and report.torch is None:
        return [f"{head}: {printable(script.trouble)}"]
    facts = [_counted(script), count(sum(c.graph_ops > 0 for c in report.compiles), "graph")]
    facts += [f"torch {printable(report.torch or 'not found')}", duration(report.outcome.seconds)]
    lines = [f"{head} · {' · '.join(facts)} · irscope show {printable(report.run)}"]
    if script.trouble:
        lines.append(f"  {printable(script.trouble)}")
    for each in script.exceeded:
        lines.append(f"  {paint('over its bound', 'yellow')}: {each.message} ({BOUNDS[each.name].flag})")
    if not report.compiles and script.verdict is Verdict.CLEAN:
        lines.append(f"  {paint('note', 'magenta')}: nothing was compiled, so nothing was checked")
    lines += [f"  {paint('not captured', 'magenta')}: {printable(f'{g.what} ({g.why})')}" for g in report.capture_gaps]
    return lines


def _counted(script: ScriptCheck) -> str:
    """``2 breaks, 1 recompile`` of those that fail, and how many other findings there are."""
    failing = script.failing_findings
    kinds = {finding.kind: kind_of(finding.kind) for finding in failing}
    said = [count(sum(f.kind == id for f in failing), *kind.short) for id, kind in kinds.items()]
    others = len(script.report.findings) - len(failing)
    if others:
        said.append(count(others, "other finding"))
    return ", ".join(said) or "no findings"
