"""A run's report as text: findings with their source, then a table of compiles."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from irscope.cli.rank_tables import rank_lines
from irscope.cli.tables import listed_in, table
from irscope.cli.text import Paint, short_path, terminal_width, width_of
from irscope.comparing.piece_matrix import piece_matrix
from irscope.findings.standing import Next, RunStanding, State, documented, sentence, standing_of
from irscope.protocol import (
    PREDICTED,
    CompileOutcome,
    Finding,
    OutcomeKind,
    Piece,
    Range,
    Report,
    Severity,
    causes_only,
    library_calls,
    to_json,
)
from irscope.store.costs import cost_words
from irscope.store.store import Store
from irscope.usercode.notebooks import notebook_of
from irscope.usercode.source import line_text, use_overlays
from irscope.vocabulary.lanes import DEFAULT_PIPELINE
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count, duration, kernels, ranks_named
from irscope.vocabulary.visible import printable

_SEVERITY_STYLE = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.INFORMATION: "blue",
    Severity.HINT: "cyan",
}
_OUTCOME_STYLE = {
    CompileOutcome.COMPILED: "green", CompileOutcome.GRAPH_BREAK: "yellow", CompileOutcome.SKIPPED: "yellow",
    CompileOutcome.ERROR: "red", CompileOutcome.RUNNING: "magenta",
}  # fmt: skip
_RELATED_SHOWN = 4


def use_cells(store: Store, run: str) -> None:
    """From now on a notebook's cells, which are no files, have the texts that they had in a run."""
    use_overlays(store.sources(run, notebook_of))


_STANDING_STYLE = {State.FAILED: "red", State.CAUSES: "yellow", State.NOTHING: "magenta", State.CLEAN: "green"}


@dataclass(frozen=True)
class ReportDocument(Report):
    """A report with how the run went, as `--json` prints it."""

    standing: RunStanding = RunStanding()


def document(report: Report) -> dict[str, Any]:
    """The report for `--json`."""
    return to_json(ReportDocument(**vars(report), standing=documented(report)))  # type: ignore[no-any-return]


_NEXT = {
    Next.FIX: "Hints are not tried yet: `irscope fix {}` tries them.",
    Next.PROFILE: "Next: `irscope profile {}` shows where the time goes.",
}


def report_lines(report: Report, paint: Paint) -> list[str]:
    """Everything that `irscope run` prints when the run has ended: first how it went, and what is next."""
    standing = standing_of(report)
    lines: list[str] = []
    if not report.ranks and (standing.causes or standing.state is State.CLEAN):  # else the end says it all
        words = {each: text.format(short_path(report.script)) for each, text in _NEXT.items()}
        said = sentence(standing, report.outcome.message, words if is_script(report.script) else None)
        lines += [*(paint(line, _STANDING_STYLE[standing.state], "bold") for line in _wrapped(said, "")), ""]
    for finding in causes_only(report.findings):
        lines += [*finding_lines(finding, paint, report.members), ""]
    if report.compiles:
        lines += [*_compile_table(report, paint), ""]
    if report.predictions:
        lines += [*_prediction_table(report, paint), ""]
    if report.ranks:
        lines += rank_lines(report, paint)
    if report.pieces:
        lines += piece_lines(report.pieces, paint)
    for gap in report.capture_gaps:
        lines.append(paint("not captured: ", "magenta") + printable(f"{gap.what} ({gap.why})"))
    for why in report.may_differ:
        lines.append(paint("may differ from a full run: ", "magenta") + printable(why))
    return [*lines, _closing(report, paint)]


def is_script(path: str) -> bool:
    """Whether a run can be made again: what was opened from elsewhere has a path, too."""
    return path.endswith((".py", ".ipynb")) and os.path.isfile(path)


def finding_lines(finding: Finding, paint: Paint, members: tuple[str, str] = ("rank", "ranks")) -> list[str]:
    """One finding: its words, its source with carets, why, and what to do.

    Args:
        members: What `Finding.ranks` counts (`Report.members`).
    """
    style = _SEVERITY_STYLE[finding.severity]
    start = finding.range.start
    times = f" ×{finding.count}" if finding.count > 1 else ""
    head = paint(printable(f"{finding.kind} {finding.code}{times}"), style, "bold")
    where = paint(f"{short_path(finding.file)}:{start.line}:{start.column + 1}", "bold")
    lines = [f"{where}  {head}", *_wrapped(finding.message, "  "), *_excerpt(finding.file, finding.range, paint, style)]
    if finding.explanation:
        lines += [paint(line, "dim") for line in _wrapped(finding.explanation, "  ")]
    for symbol in finding.symbols:
        lines += [paint(line, "dim") for line in _wrapped(symbol.line(), "  ")]
    for hint in finding.hints:
        first, *rest = _wrapped(hint, "    ")
        lines += ["  " + paint("→", "green") + first[3:], *rest]
    lines += [paint(line, "dim") for line in _beside(finding, members)]
    if costs := cost_words(finding.cost):
        lines.append(paint(f"  cost: {', '.join(costs)}", "dim"))
    if finding.link:
        lines.append(paint(f"  {printable(finding.link)}", "dim"))
    return lines


def _beside(finding: Finding, members: tuple[str, str]) -> Iterator[str]:
    """Other places of a finding, its compiles and its ranks."""
    for related in finding.related[:_RELATED_SHOWN]:
        yield from _wrapped(f"{short_path(related.file)}:{related.range.start.line}: {related.message}", "  ")
    if len(finding.related) > _RELATED_SHOWN:
        yield f"  and {len(finding.related) - _RELATED_SHOWN} more places"
    if finding.compiles:
        shown = ", ".join(finding.compiles[:12]) + (", …" if len(finding.compiles) > 12 else "")
        yield from _wrapped(f"in {count(len(finding.compiles), 'compile')}: {shown}", "  ")
    if finding.ranks:
        preposition = "on" if members[0] == "rank" else "in"
        yield f"  {preposition} {ranks_named(finding.ranks, *members)}"


def _excerpt(file: str, where: Range, paint: Paint, style: str) -> list[str]:
    """The source with carets under the range; of a long range its first four lines."""
    lines = []
    last = min(where.end.line, where.start.line + 3)
    margin = len(str(last))
    for number in range(where.start.line, last + 1):
        text = printable(line_text(file, number))
        if not text.strip():
            continue
        start = where.start.column if number == where.start.line else len(text) - len(text.lstrip())
        end = where.end.column if number == where.end.line else len(text.rstrip())
        before = "".join("\t" if c == "\t" else " " * width_of(c) for c in paint.shown(text[:start]))
        carets = "^" * max(1, width_of(paint.shown(text[start:end])))
        lines.append(paint(f"  {number:>{margin}} │ ", "dim") + text)
        lines.append(paint(f"  {' ' * margin} │ ", "dim") + before + paint(carets, style, "bold"))
    if where.end.line > last:
        lines.append(paint(f"  {' ' * margin} │ …", "dim"))
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    """Paragraphs wrapped to the terminal; lines that are indented (code) stay as they are."""
    lines = []
    for line in printable_lines(text):
        if line.startswith("  ") or not line:
            lines.append(indent + line if line else "")
        else:
            lines += textwrap.wrap(
                line, terminal_width(), initial_indent=indent, subsequent_indent=indent, break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip
    return lines or [indent]


def printable_lines(text: str) -> list[str]:
    """The lines of a text, without what a terminal would obey."""
    return [printable(line) for line in text.split("\n")]


def _compile_table(report: Report, paint: Paint) -> list[str]:
    generated = Counter(kernel.compile for kernel in report.kernels if kernel.is_generated)
    rows = [
        [
            printable(compile.id),
            printable(compile.title),
            f"{short_path(compile.file)}:{compile.line}" if compile.file else "",
            paint(compile.outcome.value, _OUTCOME_STYLE[compile.outcome]),
            str(compile.graph_ops),
            str(generated[compile.id]),
            str(compile.restarts),
            duration(compile.seconds),
        ]
        for compile in report.compiles
    ]
    head = ["compile", "function", "at", "outcome", "ops", "kernels", "restarts", "time"]
    return table(head, rows, paint, right=frozenset({4, 5, 6, 7}), whole=frozenset({0}))


def _prediction_table(report: Report, paint: Paint) -> list[str]:
    """What the targets of the run would get."""
    generated = Counter(kernel.compile for kernel in report.predicted_kernels if kernel.is_generated)
    calls = library_calls(report.predicted_kernels)
    rows = [
        [printable(one.id), printable(one.title), one.outcome.value, kernels(generated[one.id], calls[one.id])]
        for one in report.predictions
    ]
    head = ["prediction", "function", "outcome", "code"]
    return [*table(head, rows, paint, whole=frozenset({0})), paint(PREDICTED, "dim")]


def _closing(report: Report, paint: Paint) -> str:
    outcome = report.outcome
    good = outcome.kind is OutcomeKind.COMPLETED
    found, told = count(len(report.findings), "finding"), len(causes_only(report.findings))
    facts = [
        found + (f" ({count(told, 'cause')})" if told < len(report.findings) else ""),
        count(len(report.compiles) + report.compiles_of_processes, "compile"),
    ]
    if generated := sum(kernel.is_generated for kernel in report.kernels):
        facts.append(count(generated, "kernel"))
    head = paint(outcome.kind.value, "green" if good else "red", "bold")
    code = f", exit code {outcome.exit_code}" if outcome.exit_code else ""
    said = f"{head}{code}: {printable(outcome.message)}"
    if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR and report.torch is None:
        return said  # nothing has run, and nothing is kept of it
    if report.pipeline != DEFAULT_PIPELINE:
        facts.append(f"pipeline {printable(report.pipeline)}")
    facts += [
        f"torch {printable(report.torch or 'not found')}",
        duration(outcome.seconds),
        f"run {printable(report.run)}",
    ]
    return f"{said}\n" + "\n".join(listed_in(facts, paint.columns))


_MOST_ROWS, _MOST_COLUMNS = 40, 8


def piece_lines(pieces: Sequence[Piece], paint: Paint) -> list[str]:
    """The matrix, and an empty line after it."""
    found = piece_matrix(pieces, _MOST_ROWS, _MOST_COLUMNS)
    cells = [[printable(row.title), *(printable(cell) or "–" for cell in row.cells)] for row in found.rows]
    lines = [paint(f"Pieces by size ({found.note}):", "dim")]
    lines += table(["piece", *map(printable, found.sizes)], cells, paint, whole=frozenset({0}))
    if found.hidden_rows or found.hidden_sizes:
        lines.append(
            paint(f"and {found.hidden_rows} more pieces, {found.hidden_sizes} more sizes (--json has all)", "dim")
        )
    return [*lines, ""]
