"""What draft export reports: operations without a right fake kernel, and values that Python needs while it traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from irscope.events.printed_frames import FRAME
from irscope.internals.exporting import file_names
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE
from irscope.protocol import Finding, Origin
from irscope.usercode.source import range_of_focus
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Issue:
    """One failure in the report of draft export.

    Args:
        code: ``missing-fake-kernel``, ``mismatched-fake-kernel``, ``data-dependent-error`` or ``guard-added``.
        subject: The operator, or the expression.
        detail: Why a fake kernel does not match, the value that was taken, or the inputs of a guard.
        frames: The user's stack, outermost first: places in files.
    """

    code: str
    subject: str
    detail: str
    frames: tuple[Origin, ...]


_CODES = {
    "MISSING_FAKE_KERNEL": "missing-fake-kernel",
    "MISMATCHED_FAKE_KERNEL": "mismatched-fake-kernel",
    "DATA_DEPENDENT_ERROR": "data-dependent-error",
    "GUARD_ADDED": "guard-added",
}


def issues_of(report: Any, exported: Any) -> list[Issue]:
    """The issues of a ``DraftExportReport``."""
    files = file_names(report)
    return [_issue(failure, files, exported) for failure in report.failures]


def _issue(failure: Any, files: dict[int, str], exported: Any) -> Issue:
    name, data = failure.failure_type.name, failure.data
    frames = tuple(
        Origin(str(files[frame["filename"]]), int(frame["line"]))
        for frame in data.get("user_stack") or ()
        if frame["filename"] in files
    )
    subject = str(data.get("op") or data.get("expr") or "")
    detail = str(data.get("reason") or data.get("result") or data.get("symbol_to_sources") or "")
    if not frames and data.get("op"):  # PyTorch tells no stack for an operator: the first node that calls it has one
        frames = _frames_of(subject, exported)
    return Issue(_CODES.get(name, name.lower().replace("_", "-")), subject, detail, frames)


def _frames_of(operator: str, exported: Any) -> tuple[Origin, ...]:
    for node in exported.graph.nodes:
        if node.op == "call_function" and _operator(str(node.target)) == _operator(operator):
            frames = FRAME.finditer(node.meta.get("stack_trace") or "")
            return tuple(Origin(frame["file"], int(frame["line"])) for frame in frames)
    return ()


def _operator(name: str) -> str:
    """``mylib::twice``, ``mylib.twice`` and ``mylib.twice.default`` are the same."""
    return ".".join(name.replace("::", ".").split(".")[:2])


def message_of(issue: Issue) -> str:
    """What happened, in one sentence."""
    if issue.code == "missing-fake-kernel":
        return f"The operator {issue.subject} has no fake kernel, so torch.export cannot trace it."
    if issue.code == "mismatched-fake-kernel":
        return f"The fake kernel of {issue.subject} does not match the operator: {issue.detail.rstrip('.')}."
    if issue.code == "data-dependent-error":
        return f"Python needs the value of {issue.subject}, which depends on the data of a tensor."
    if issue.code == "guard-added":
        return f"The program was traced for {issue.subject} only."
    return f"Draft export reports {issue.code}: {issue.subject}"


def explanation_of(issue: Issue) -> str:
    """What draft export did about it."""
    if issue.code == "missing-fake-kernel":
        return "Draft export took the shapes of the result from a call of the real operator."
    if issue.code == "mismatched-fake-kernel":
        return "Draft export went on with the result of the real operator."
    if issue.code == "data-dependent-error":
        return f"Draft export took the value of this call, {issue.detail}, and put a check into the graph."
    if issue.code == "guard-added":
        return "Other sizes of the inputs need another program."
    return ""


def hints_of(issue: Issue) -> tuple[str, ...]:
    """What to do."""
    if issue.code in ("missing-fake-kernel", "mismatched-fake-kernel"):
        return (
            f'Register a function that gives shape and dtype of the result: @torch.library.register_fake("{_colons(issue.subject)}").',
        )
    if issue.code == "data-dependent-error":
        return (
            "State what is known about the value: torch._check(…). For a choice between two results: torch.where or torch.cond.",
        )
    if issue.code == "guard-added":
        return ("Give the dimension as torch.export.Dim.AUTO, or change the code that fixes its size.",)
    return ()


def _colons(operator: str) -> str:
    return _operator(operator).replace(".", "::", 1)


def report_text(issues: Iterable[Issue], failure: str) -> str:
    """The report as a stage: each issue with its place.

    Args:
        failure: Why draft export gave no program; empty if it gave one.
    """
    rows = []
    for number, issue in enumerate(issues, 1):
        at = innermost(issue)
        place = f"{at.file}:{at.line}: " if at is not None else ""
        rows += [f"{number}. {place}{issue.code}", f"   {message_of(issue)}", f"   {explanation_of(issue)}".rstrip()]
        rows += [f"   {hint}" for hint in hints_of(issue)]
        rows.append("")
    if failure:
        rows += ["Draft export failed, too:", f"   {failure}"]
    elif not rows:
        rows.append("Draft export found no issue.")
    return "\n".join(rows).rstrip() + "\n"


def innermost(issue: Issue) -> Origin | None:
    """The last place in the user's files."""
    return next((frame for frame in reversed(issue.frames) if is_user_file(frame.file)), None)


def findings_of(
    issues: Iterable[Issue], function: Origin, compiles: tuple[str, ...] = (), known: Origin | None = None
) -> Iterator[Finding]:
    """A finding at each issue's place.

    Args:
        function: The place of an issue without one.
        known: Where a finding says already that a value is needed there.
    """
    kind = DRAFT_EXPORT_ISSUE
    for issue in issues:
        at = innermost(issue) or function
        if issue.code == "data-dependent-error" and at == known:
            continue
        where = range_of_focus(at.file, at.line)
        yield Finding(
            kind=kind.id, code=issue.code, severity=kind.severity, message=message_of(issue),
            explanation=explanation_of(issue), hints=hints_of(issue), link=None, file=at.file, range=where, count=1,
            compiles=compiles,
        )  # fmt: skip
