"""Compares what irscope found in a case of `tests/cases` with what is true of it (see the README there)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irscope.protocol import Finding, Range, Report

CASES = Path(__file__).parent / "cases"
_KINDS = ("graph-break", "recompilation", "recompile-limit", "compile-error")

Span = tuple[int, int, int, int]


@dataclass
class Score:
    """How many facts there are of each sort, how many were found, and what is wrong, in words."""

    breaks: int = 0
    breaks_at_line: int = 0
    breaks_at_range: int = 0
    breaks_counted: int = 0
    recompilations: int = 0
    recompilations_found: int = 0
    errors: int = 0
    errors_found: int = 0
    limits: int = 0
    limits_found: int = 0
    false: int = 0
    problems: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Score) -> None:
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def case_names() -> list[str]:
    return sorted(path.stem for path in (CASES / "truth").glob("*.json"))


def script_of(name: str) -> Path:
    return CASES / "scripts" / f"{name}.py"


def truth_of(name: str) -> dict[str, Any]:
    return json.loads((CASES / "truth" / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def compare(name: str, report: Report) -> Score:
    """Every break at its file, line, columns and id, as often as it happened; every recompilation by compile and call;
    every error and limit; and nothing besides."""
    truth = truth_of(name)
    score, used = Score(), set[int]()
    findings = [finding for finding in report.findings if finding.kind in _KINDS]
    for fact in truth["breaks"]:
        _break(fact, findings, used, score)
    for fact in truth["recompiles"]:
        _recompilation(fact, findings, used, score)
    for fact in truth["errors"]:
        _error(fact, findings, used, score)
    for fact in truth.get("limits", []):
        _limit(fact, findings, used, score)
    for i, finding in enumerate(findings):
        if i not in used:
            score.false += 1
            score.problems.append(
                f"false: {finding.kind} {finding.code} at {finding.file}:{finding.range.start.line}: {finding.message}"
            )
    return score


def _break(fact: dict[str, Any], findings: list[Finding], used: set[int], score: Score) -> None:
    path = CASES / "scripts" / fact["file"]
    ids = {fact["gb"], *fact.get("chain", [])}
    hits = [i for i, f in enumerate(findings) if _at(f, path, fact["line"]) and f.code in ids]
    used.update(hits)
    if fact.get("artifact") is False:
        return  # PyTorch says nothing of it in its trace: may be found, need not be
    what = f"{fact['gb']} at {fact['file']}:{fact['line']}"
    score.breaks += 1
    if not hits:
        score.problems.append(f"missed: {what}")
        return
    score.breaks_at_line += 1
    wanted = {_span(path, fact["line"], fact["col"], fact["end_line"], fact["end_col"])}
    wanted |= {_span(path, *other) for other in fact.get("alt_ranges", []) if len(other) == 4}
    got = {_columns(findings[i].range) for i in hits}
    if got <= wanted:
        score.breaks_at_range += 1
    else:
        score.problems.append(f"{what}: range {sorted(got)}, wanted {sorted(wanted)}")
    count = sum(findings[i].count for i in hits)
    if count == fact["count"]:
        score.breaks_counted += 1
    else:
        score.problems.append(f"{what}: count {count}, wanted {fact['count']}")


def _recompilation(fact: dict[str, Any], findings: list[Finding], used: set[int], score: Score) -> None:
    hits = [i for i, f in enumerate(findings) if f.kind == "recompilation" and fact["compile_id"] in f.compiles]
    used.update(hits)
    if fact.get("not_compiled"):
        return  # a limit or `error_on_recompile` stopped it
    score.recompilations += 1
    wanted = (
        str(CASES / "scripts" / fact["call_file"]),
        _span(CASES / "scripts" / fact["call_file"], *fact["call_range"]),
    )
    calls = {(place.file, _columns(place.range)) for i in hits for place in findings[i].related}
    if wanted in calls:
        score.recompilations_found += 1
    else:
        score.problems.append(f"recompilation {fact['compile_id']}: calls {sorted(calls)}, wanted {wanted}")


def _error(fact: dict[str, Any], findings: list[Finding], used: set[int], score: Score) -> None:
    score.errors += 1
    hits = [i for i, f in enumerate(findings) if f.kind != "recompile-limit" and f.range.start.line == fact.get("line")]
    used.update(hits)
    if hits:
        score.errors_found += 1
    else:
        score.problems.append(f"missed: {fact['type']} at line {fact.get('line')}")


def _limit(fact: dict[str, Any], findings: list[Finding], used: set[int], score: Score) -> None:
    score.limits += 1
    hits = [i for i, f in enumerate(findings) if f.kind == "recompile-limit"]
    used.update(hits)
    if hits:
        score.limits_found += 1
    else:
        score.problems.append(f"missed: recompile limit {fact}")


def _at(finding: Finding, path: Path, line: int) -> bool:
    return Path(finding.file).resolve() == path.resolve() and finding.range.start.line == line


def _columns(where: Range) -> Span:
    return (where.start.line, where.start.column, where.end.line, where.end.column)


def _span(path: Path, line: int, column: int, end_line: int, end_column: int) -> Span:
    """The truth's UTF-8 byte offsets as indices into the lines."""
    lines = path.read_bytes().split(b"\n")
    return (line, _index(lines, line, column), end_line, _index(lines, end_line, end_column))


def _index(lines: list[bytes], line: int, byte: int) -> int:
    return len(lines[line - 1][:byte].decode("utf-8"))
