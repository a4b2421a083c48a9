"""irscope's own requests: runs, kernels at a line, stages, documents."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from irscope.findings.kinds import compiled_code_error
from irscope.protocol import Kernel, Report
from irscope.provenance.kernels import output_code_of
from irscope.store.store import Store

from irscope_server.app.deep_run import NOT_TRUSTED, deep_run, no_entry, wait_for
from irscope_server.app.server import IrscopeServer
from irscope_server.base.compiled import compiles_text
from irscope_server.base.context import ReadContext
from irscope_server.base.params import (
    CheckParams,
    KernelsAtParams,
    ReportParams,
    RunParams,
    RunsParams,
    StagesOfParams,
    UriParams,
)
from irscope_server.base.results import (
    CancelResult,
    CheckResult,
    DocumentResult,
    EntriesResult,
    KernelChoice,
    KernelsResult,
    RunResult,
    RunsResult,
    RunTree,
    StagesResult,
)
from irscope_server.base.stage_uris import SCHEME, parts_of
from irscope_server.base.texts import FileKey, keyed, path_in_folder
from irscope_server.base.trees import statements_of, tree_of
from irscope_server.running.results import Ended
from irscope_server.stages.documents import document
from irscope_server.stages.kernel_facts import kernel_choices
from irscope_server.stages.linked import RunReader
from irscope_server.stages.tree import run_item, run_tree, stages_of

NOT_A_FILE = "This document is not a file and cannot be run. Save it first."
_MOST_LINES = 12
_NOTHING_TO_CHECK = "This file has no known error in compiled code, so there is nothing to check."


async def runs(server: ReadContext, params: RunsParams) -> RunsResult:
    """The newest runs in the store, at most 1000; those of one script where a URI is given."""
    path = server.path_of(params.uri) if params.uri else None
    if params.uri and path is None:
        return RunsResult(())
    list_runs = server.archive.runs_of_each_pipeline if params.each_pipeline else server.archive.runs
    summaries = await list_runs(max(1, min(params.limit, 1000)), path)
    return RunsResult(tuple(run_item(summary, server.uri_of) for summary in summaries))


async def report(server: ReadContext, params: ReportParams) -> RunTree:
    """Raises LookupError for an unknown run."""

    def read(store: Store) -> RunTree:
        report = store.report(params.run)
        summary = next(s for s in store.runs(-1, report.script) if s.run == params.run)
        return run_tree(summary, report, server.uri_of, lambda stage: _text(store, params.run, stage))

    return await server.archive.ask(read)


async def run(server: IrscopeServer, params: RunParams) -> RunResult:
    """Run a document's script and wait for its end; ``run`` is None if none could start, and ``message`` says why."""
    document = server.document(params.uri)
    if document is None:
        return RunResult(None, "environment-error", NOT_A_FILE)
    if not server.trusted:
        return RunResult(None, "environment-error", NOT_TRUSTED)
    started = await server.activity.start(document, params.lane, params.entry, params.pipeline)
    if started is None:
        return RunResult(None, "no-entry", no_entry(document.path))
    ended = await wait_for(started)
    outcome = ended.report.outcome
    return RunResult(ended.run or None, outcome.kind.value, outcome.message, len(ended.report.compiles))


async def check_without_compile(server: IrscopeServer, params: CheckParams) -> CheckResult:
    """Run a script without compile, after it failed inside compiled code, and wait for what this says.

    Where the texts are another than when it failed, it is first run as it is now.
    """
    document = server.document(params.uri)
    if document is None or not server.trusted:
        return CheckResult(None, NOT_A_FILE if document is None else NOT_TRUSTED)
    plan = await server.activity.plan(document)
    if plan is None:
        return CheckResult(None, no_entry(document.path))
    runs = [server.results.newest(plan.entry.key), server.results.deep(plan.entry.key)]
    failed = [ended for ended in runs if ended is not None and compiled_code_error.to_check(ended.report) is not None]
    failed.sort(key=lambda ended: ended.run != params.run)
    if not failed:
        return CheckResult(None, _NOTHING_TO_CHECK)
    same = not server.texts.are_edited(failed[0].texts) and bool(failed[0].run)
    pipeline = failed[0].report.pipeline
    check = failed[0].run if same else ""
    started = await server.activity.start(document, failed[0].lane, pipeline=pipeline, check=check)
    if started is None:
        return CheckResult(None, no_entry(document.path))
    ended = await wait_for(started)
    error = compiled_code_error.to_check(ended.report)
    if error is None:
        return CheckResult(ended.run or None, f"{_NOTHING_TO_CHECK} {ended.report.outcome.message}")
    return CheckResult(ended.run, compiled_code_error.verdict_of(error) or "The check was cancelled.")


def cancel(server: IrscopeServer, params: UriParams) -> CancelResult:
    """Stop the run of a document, and what is measured of it; ``cancelled`` is false if none was running."""
    path = server.path_of(params.uri)
    key = server.key_of(path) if path is not None else ""
    stopped = [server.runs.cancel(key), server.measurements.cancel(key)]
    return CancelResult(any(stopped))


async def entries(server: IrscopeServer, params: UriParams) -> EntriesResult:
    """What runs a document, and what else may."""
    document = server.document(params.uri)
    if document is None:
        raise ValueError(NOT_A_FILE)
    path, folder = document.path, server.folder_of(document.path)
    plan = await server.activity.plan(document)
    launches = server.planner.launches(path, folder, await server.settings_for(params.uri))
    candidates = await server.candidates.candidates(path, folder, launches, keyed(server.overlays()))
    return EntriesResult(
        path_in_folder(path, folder),
        plan.entry.title if plan else None,
        tuple(candidates),
    )


async def kernels_at(server: IrscopeServer, params: KernelsAtParams) -> KernelsResult:
    """The kernels of the line; if it has none of its own, those of the statement that it belongs to.

    On the first line of a compound statement (``def``, ``for``, ``with``) that is all of its body, and of a compiled
    function whatever it was compiled to; of a line of a stage, what it became.
    """
    document = server.document(params.uri)
    if document is None and params.uri.startswith(f"{SCHEME}:"):
        return await _kernels_of_stage(server, params)
    if document is None:
        return KernelsResult(None, (), NOT_A_FILE)

    def has_some(deep: Ended) -> bool:
        return bool(_kernels_of_line(server, document.key, params.line, deep)[0])

    deep, reason = await deep_run(server, document, params.run, enough=has_some)
    if deep is None:
        return KernelsResult(None, (), reason)
    kernels, by_line = _kernels_of_line(server, document.key, params.line, deep)
    items = await _choices(server, deep.report, kernels)
    running = any(run.live.run == deep.run for run in server.runs.all())
    return KernelsResult(deep.run, items, reason if items else _why_none(deep, params.line, by_line, reason), running)


def _kernels_of_line(
    server: IrscopeServer, key: FileKey, line: int, deep: Ended
) -> tuple[tuple[Kernel, ...], dict[int, Sequence[Kernel]]]:
    """The kernels of a line as `kernels_at` answers it, and those of each line of its file."""
    lines = server.texts.lines(key)
    line_map = server.views.line_map(deep.texts.get(key), lines)
    by_line = {
        now: kernels
        for ran, kernels in deep.kernels.get(key, {}).items()
        if (now := line_map.exact(ran - 1)) is not None
    }
    of_line = by_line.get(line, ())
    if not of_line:
        first, last = statement_around("\n".join(lines), line)
        of_line = [kernel for near in range(first, last + 1) for kernel in by_line.get(near, ())]
    of_line = [*of_line, *_kernels_of_function(server, key, line, deep)]
    return tuple({(kernel.stage, kernel.name): kernel for kernel in of_line}.values()), by_line


def _kernels_of_function(server: IrscopeServer, key: FileKey, line: int, deep: Ended) -> list[Kernel]:
    """The kernels of the compiled function whose ``def`` is in a line."""
    wanted = {
        (compile.function, compile.line)
        for function in server.views.functions(key)
        if function.line == line and not function.elsewhere
        for compile in function.compiles
    }
    ids = {compile.id for compile in deep.compiles.get(key, ()) if (compile.function, compile.line) in wanted}
    return [kernel for kernel in deep.report.kernels if kernel.compile in ids]


async def _kernels_of_stage(server: IrscopeServer, params: KernelsAtParams) -> KernelsResult:
    run, candidates = parts_of(params.uri)

    def read(reader: RunReader) -> list[Kernel]:
        stage = reader.stage_of(candidates)
        of_line = reader.linked.kernels_of(stage.id, params.line + 1)
        codes = reader.linked.thread.codes
        return [kernel for kernel in reader.report.kernels if (output_code_of(codes, kernel), kernel.name) in of_line]

    kernels = await server.stages.ask(run, read)
    report = await server.archive.report(run)
    items = await _choices(server, report, kernels)
    return KernelsResult(
        run, items, "" if items else f"No kernel came from line {params.line + 1}. {_looked_at(report)}"
    )


async def stages(server: IrscopeServer, params: StagesOfParams) -> StagesResult:
    """The stages of the newest deep run of a document, or of a stage's run; else ``reason`` says why there are none."""
    document = server.document(params.uri)
    if document is None and params.uri.startswith(f"{SCHEME}:"):
        name, _ = parts_of(params.uri)
        return StagesResult(name, stages_of(await server.archive.report(name)), "")
    if document is None:
        return StagesResult(None, (), NOT_A_FILE)
    enough = None if params.run else _has_stages
    deep, reason = await deep_run(server, document, params.run, params.pipeline, enough)
    if deep is None:
        return StagesResult(None, (), reason)
    newest = deep.report
    with contextlib.suppress(LookupError):  # as it is in the store, with what was made since the run
        newest = await server.archive.report(deep.run)
    listed = stages_of(newest)
    if not listed and not reason:
        reason = f"The run has no stages. {deep.report.outcome.message}".strip()
    return StagesResult(deep.run or None, listed, reason)


def _has_stages(so_far: Ended) -> bool:
    return any(compile.stages for compile in so_far.report.compiles)


async def text_of_document(server: IrscopeServer, params: UriParams) -> DocumentResult:
    """The text of a read-only document; a stage that was not made yet is made first, which can take seconds."""
    return await document(server.archive, params.uri, server.on_demand.make)


async def _choices(server: IrscopeServer, report: Report, kernels: Sequence[Kernel]) -> tuple[KernelChoice, ...]:
    """The kernels compile by compile, as they are in the run."""
    if not kernels:
        return ()
    order = {compile.id: number for number, compile in enumerate(report.compiles)}
    kernels = sorted(kernels, key=lambda kernel: order.get(kernel.compile, len(order)))

    def read(store: Store) -> tuple[KernelChoice, ...]:
        return kernel_choices(store, report, kernels, server.uri_of, lambda stage: _text(store, report.run, stage))

    return await server.archive.ask_aside(read)


def _text(store: Store, run: str, stage: str) -> str:
    try:
        return store.stage_text(run, stage)
    except LookupError:
        return ""


def _why_none(deep: Ended, line: int, by_line: dict[int, Sequence[Kernel]], reason: str) -> str:
    """Why a line (0-based) has no kernel, and where that was looked for."""
    parts = [f"No kernel came from line {line + 1}.", _looked_at(deep.report)]
    if not deep.report.kernels:
        parts.append(deep.report.outcome.message)
    elif by_line:
        shown = ", ".join(str(line + 1) for line in sorted(by_line)[:_MOST_LINES])
        parts.append(f"Lines with kernels: {shown}{', …' if len(by_line) > _MOST_LINES else ''}.")
    else:
        parts.append("No line of this file has one.")
    return " ".join(dict.fromkeys(part for part in [*parts, reason] if part))


def _looked_at(report: Report) -> str:
    """``Looked at run 20261128-101500-ab: 0/0 LlamaForCausalLM (20 kernels).``"""
    return f"Looked at run {report.run}: {compiles_text(report) or 'nothing was compiled'}."


def statement_around(text: str, line: int) -> tuple[int, int]:
    """First and last line (0-based) of the innermost statement that a line belongs to; an empty line belongs to none."""
    tree = tree_of(text)
    lines = text.split("\n")
    if tree is None or not (line < len(lines) and lines[line].strip()):
        return line, line
    best = (line, line)
    size: float = float("inf")
    for node in statements_of(tree):
        end = node.end_lineno or node.lineno
        if node.lineno <= line + 1 <= end and end - node.lineno <= size:
            best, size = (node.lineno - 1, end - 1), end - node.lineno
    return best
