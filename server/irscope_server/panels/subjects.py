"""``irscope/subjectOf``: which run and compile the place in an editor belongs to."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.protocol import Lane, Report, RunSummary
from irscope.store.store import Store
from irscope.usercode.reading import name_among

from irscope_server.base.context import ReadContext
from irscope_server.base.line_map import LineMap
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import RunItem
from irscope_server.base.stage_uris import NoDocument, parts_of
from irscope_server.base.texts import split_lines
from irscope_server.base.trees import tree_of
from irscope_server.stages.tree import run_item

_MOST_RUNS = 20


@dataclass(frozen=True)
class SubjectOfParams:
    """A line of a document, whose run and compile are asked for."""

    uri: str
    line: int = 0


@dataclass(frozen=True)
class SubjectOfResult:
    """What a place belongs to; each is None if nothing is known."""

    run: RunItem | None
    """The newest run that has to do with the document; for a stage its run."""
    deep: RunItem | None
    """The newest one of the deep lane; for a stage its run."""
    compile: str | None
    """The deep run: the newest compile of the function that the line is in, else of what came from the function."""
    stage: str | None


async def subject_of(context: ReadContext, params: SubjectOfParams) -> SubjectOfResult:
    """Answers with None in each field if no run belongs to the document.  Raises LookupError for an unknown stage."""
    path = context.path_of(params.uri)
    if path is not None:
        lines = context.texts.lines(path)
        return await context.archive.ask(lambda store: _of_file(store, context, path, params.line, lines))
    try:
        run, stages = parts_of(params.uri)
    except NoDocument:
        return SubjectOfResult(None, None, None, None)
    report = await context.archive.report(run)
    for compile in report.compiles:
        for stage in compile.stages:
            if stage.id in stages:
                summary = await context.archive.ask(lambda store: _summary(store, run, report.script))
                item = run_item(summary, context.uri_of) if summary else None
                return SubjectOfResult(item, item, compile.id, stage.id)
    raise LookupError(f"Run {run} has no stage {stages[0]}.")


def _summary(store: Store, run: str, script: str) -> RunSummary | None:
    return next((summary for summary in store.runs(-1, script) if summary.run == run), None)


def _of_file(store: Store, context: ReadContext, path: str, line: int, lines: Sequence[str]) -> SubjectOfResult:
    runs = store.runs_of_file(path, _MOST_RUNS)
    newest = next((one for one in runs if one.compiles), runs[0] if runs else None)
    deep = next((one for one in runs if one.lane is Lane.DEEP and one.compiles), None)
    compile = None
    if deep is not None:
        sources = store.sources(deep.run)
        file = name_among(sources, path)
        old = sources.get(file, "")
        compile = compile_at(store.report(deep.run), file, old, line_as_ran(old, lines, line) + 1)
    return SubjectOfResult(
        run_item(newest, context.uri_of) if newest else None,
        run_item(deep, context.uri_of) if deep else None,
        compile,
        None,
    )


def line_as_ran(old: str, lines: Sequence[str], line: int) -> int:
    """The 0-based line of the text that ran for one of the text as it is now; the same where it was edited."""
    mapped = LineMap(lines, split_lines(old)).exact(line) if old else None
    return line if mapped is None else mapped


def compile_at(report: Report, file: str, text: str, line: int) -> str | None:
    """The newest compile of the innermost compiled function around a line (1-based) of a text as it ran.

    Where that function was inlined into others: the newest that has a kernel from it.
    """
    for first, last in _functions_around(text, line):
        mine = [c for c in report.compiles if c.file == file and first <= c.line <= last]
        if mine:  # a resume function begins at the line where its function goes on
            begin = max((c.line for c in mine if c.line <= line), default=first)
            here = [c for c in mine if c.line == begin] or mine
            return next((c.id for c in reversed(here) if c.stages), here[-1].id)
        kernels = [
            kernel
            for kernel in report.kernels
            if any(origin.file == file and first <= origin.line <= last for origin in kernel.origins)
        ]
        if kernels:
            return kernels[-1].compile
    return None


def _functions_around(text: str, line: int) -> list[tuple[int, int]]:
    """First (with decorators) and last line of the functions that a line is in, the innermost first."""
    tree = tree_of(text)
    if tree is None:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = node.decorator_list if not isinstance(node, ast.Lambda) else []
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            if first <= line <= (node.end_lineno or node.lineno):
                found.append((first, node.end_lineno or node.lineno))
    return sorted(found, key=lambda span: span[1] - span[0])


REQUEST = PanelRequest("irscope/subjectOf", SubjectOfParams, SubjectOfResult, subject_of)
