"""What people say about findings: comments that ignore one, severities of their own, a baseline of what is known.

A comment ``# irscope: ignore[GB0059] reason`` on a line hides that finding there; without a list it hides all.  A
comment that no longer hides anything is a finding itself.  A baseline is a file of findings that were there when a
code base started to use irscope; only what is new is shown.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import os
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from irscope.findings.kinds import unused_ignore
from irscope.findings.places import function_of
from irscope.findings.registry import all_kinds
from irscope.protocol import Finding, Lane, OutcomeKind, Position, Range, Report, Severity
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import function_around, line_text, parents, read_source
from irscope.usercode.writing import write_file
from irscope.vocabulary.findings import DEEP_ONLY
from irscope.vocabulary.records import dataclass

UNUSED = unused_ignore.KIND.id
_COMMENT = re.compile(r"#\s*irscope:\s*ignore(?:\[(?P<codes>[^\]]*)\])?")


@dataclass(frozen=True)
class Comment:
    """An ignore comment.  ``codes`` is empty for one that hides everything on its line."""

    file: str
    range: Range
    codes: tuple[str, ...]


def comments_in(path: str) -> list[Comment]:
    """The ignore comments of a file; what looks like one inside a string is none."""
    text = read_source(path)
    if "irscope:" not in text:
        return []
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
                codes = tuple(code.strip() for code in (match["codes"] or "").split(",") if code.strip())
                start = token.start[1] + match.start()
                where = Range(Position(token.start[0], start), Position(token.start[0], token.start[1] + match.end()))
                found.append(Comment(path, where, codes))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def controlled(
    report: Report, lane: Lane, severities: Mapping[str, str] | None = None, baseline: Mapping[str, int] | None = None
) -> Report:
    """The report as the user wants to see it.

    Args:
        severities: Severity by code or kind: ``error``, ``warning``, ``information``, ``hint`` or ``off``; a code has
            priority over its kind.
        baseline: From `read_baseline`.
    """
    comments = _comments_of(report)
    hidden, used = _hidden(report, comments, baseline)
    shown = [finding for finding in report.findings if id(finding) not in hidden]
    if report.outcome.kind is OutcomeKind.COMPLETED:
        shown += [
            _unused(comment)
            for comment in comments
            if comment not in used and _can_judge(comment, lane) and _was_reached(comment, report)
        ]
    return dataclasses.replace(report, findings=tuple(_with_severities(shown, severities or {})))


def hidden_because(
    report: Report, severities: Mapping[str, str] | None = None, baseline: Mapping[str, int] | None = None
) -> dict[tuple[object, ...], str]:
    """Why findings are not shown, by their cause: ``ignored`` by a comment, in the ``baseline``, or ``off``.

    The parameters are those of `controlled`.
    """
    hidden, _ = _hidden(report, _comments_of(report), baseline)
    found: dict[tuple[object, ...], str] = {}
    for finding in report.findings:
        if id(finding) in hidden:
            found[finding.cause] = hidden[id(finding)]
        elif (severities or {}).get(finding.code, (severities or {}).get(finding.kind)) == "off":
            found[finding.cause] = "off"
    return found


def _comments_of(report: Report) -> list[Comment]:
    files = dict.fromkeys([report.script, *(c.file for c in report.compiles), *(f.file for f in report.findings)])
    return [comment for file in files if os.path.isfile(file) for comment in comments_in(file)]


def _hidden(
    report: Report, comments: Sequence[Comment], baseline: Mapping[str, int] | None
) -> tuple[dict[int, str], set[Comment]]:
    """Why findings are hidden, by their `id`, and the comments that hide something."""
    used: set[Comment] = set()
    hidden: dict[int, str] = {}
    known = Counter(baseline or {})
    for finding in report.findings:
        hiding = [comment for comment in comments if _hides(comment, finding)]
        used.update(hiding)
        if hiding:
            hidden[id(finding)] = "ignored"
        elif known[key := identity(finding)] > 0:
            known[key] -= 1
            hidden[id(finding)] = "baseline"
    return hidden, used


def _hides(comment: Comment, finding: Finding) -> bool:
    line = comment.range.start.line
    if comment.file != finding.file or line not in (finding.range.start.line, finding.range.end.line):
        return False
    return not comment.codes or finding.code in comment.codes or finding.kind in comment.codes


def _can_judge(comment: Comment, lane: Lane) -> bool:
    if lane is Lane.DEEP:
        return True
    return bool(comment.codes) and not any(code.startswith(_deep_codes()) for code in comment.codes)


@functools.cache
def _deep_codes() -> tuple[str, ...]:
    """What codes begin with that only a deep run can give; in the fast lane a comment for one cannot be judged."""
    deep = [kind for kind in all_kinds().values() if kind.lanes == DEEP_ONLY or kind.deep_codes]
    return tuple(code for kind in deep for code in (kind.id, *kind.deep_codes))


def _was_reached(comment: Comment, report: Report) -> bool:
    """Whether the run compiled the function that the comment is in; a module may be shared by scripts that use
    different parts of it.

    A function that is inlined into others has no compile of its own; what shows that is anything found in it or
    a kernel that came from it.
    """
    line = comment.range.start.line
    node = function_around(comment.file, line)
    if node is None:
        return comment.file == report.script or any(c.file == comment.file for c in report.compiles)
    around = [node]
    while (outer := parents(comment.file).get(around[-1])) is not None:
        around.append(outer)  # type: ignore[arg-type]
    if any(function_of(c) in around for c in report.compiles if c.file == comment.file):
        return True
    places = [(f.file, f.range.start.line) for f in report.findings]
    places += [(place.file, place.range.start.line) for f in report.findings for place in f.related]
    places += [(origin.file, origin.line) for kernel in report.kernels for origin in kernel.origins]
    return any(file == comment.file and node.lineno <= at <= (node.end_lineno or 0) for file, at in places)


def _unused(comment: Comment) -> Finding:
    what = f"[{', '.join(comment.codes)}]" if comment.codes else ""
    return Finding(
        kind=UNUSED,
        code=UNUSED,
        severity=unused_ignore.KIND.severity,
        message=f"This comment has no effect: no finding{' ' + what if what else ''} was made on this line in the newest run.",
        explanation="The finding is gone, or it is on another line now.",
        hints=("Delete the comment.",),
        link=None,
        file=comment.file,
        range=comment.range,
        count=1,
        compiles=(),
    )


def _with_severities(findings: Iterable[Finding], severities: Mapping[str, str]) -> Iterable[Finding]:
    for finding in findings:
        wanted = severities.get(finding.code, severities.get(finding.kind))
        if wanted == "off":
            continue
        if wanted is not None and wanted in {severity.value for severity in Severity}:
            yield dataclasses.replace(finding, severity=Severity(wanted))
        else:
            yield finding


# --- baseline ---------------------------------------------------------------------------------------------------------


def identity(finding: Finding) -> str:
    """Names a finding by what it is about, not by its line number, which every edit above it moves."""
    text = line_text(finding.file, finding.range.start.line).strip()
    return f"{finding.code} {os.path.basename(finding.file)} {text}"


def baseline_of(findings: Iterable[Finding]) -> dict[str, int]:
    """How often each finding is there."""
    return dict(sorted(Counter(map(identity, findings)).items()))


def write_baseline(path: str, findings: Iterable[Finding]) -> None:
    """Writes the findings as the baseline of a workspace; readable, sorted, and easy to merge.  Raises WriteError."""
    text = json.dumps({"irscope-baseline": 1, "findings": baseline_of(findings)}, indent=1, ensure_ascii=False)
    write_file(path, f"{text}\n".encode("utf-8", "backslashreplace"))  # as JSON writes half a character


def read_baseline(path: str) -> dict[str, int]:
    """The findings of a baseline file.  Raises LookupError with a message for the user if it is not one."""
    try:
        data = json.loads(read_bounded(path).decode("utf-8"))
        if data.get("irscope-baseline") != 1:
            raise ValueError("it has another version")
        return {str(key): int(count) for key, count in data["findings"].items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise LookupError(
            f"{path} is not an irscope baseline ({error}). Write one: irscope run SCRIPT --write-baseline {path}"
        ) from error
