"""The deep run that belongs to a document: one that has ended, that goes on, or that is started for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from irscope.protocol import Lane
from irscope.usercode.notebooks import notebook_of
from irscope.usercode.source import digest_of

from irscope_server.app.server import IrscopeServer
from irscope_server.base.context import Document
from irscope_server.base.texts import FileKey
from irscope_server.running.plans import Plan
from irscope_server.running.results import Ended, files_of
from irscope_server.running.runs import Run, with_texts

NOT_TRUSTED = "The workspace is not trusted, so no script is run. Trust it first (Workspaces: Manage Workspace Trust)."
_OUTDATED = "This result is from an earlier version of the file. Run the file again to update it."

Enough = Callable[[Ended], bool]
"""Whether a run that goes on has what is asked for already."""


async def deep_run(
    server: IrscopeServer,
    document: Document,
    may_run: bool,
    pipeline: str = "",
    enough: Enough | None = None,
) -> tuple[Ended | None, str]:
    """The deep run of the chosen pipeline that has results for a file, and what has to be said about it.

    Runs of the texts as they are now: this session's, the store's, then that of another script that uses this file,
    then one that goes on and has enough already; else a new one is run if that is wanted, else the newest of an
    earlier text is taken.  A run that goes on is waited for until it has enough, or until its end.
    """
    path, key = document.path, document.key
    plan = await server.activity.plan(document)
    pipeline = pipeline or (plan.settings if plan else await server.settings_for(document.uri)).pipeline
    mine = server.results.deep(plan.entry.key if plan else key)
    mine = mine if mine is not None and mine.report.pipeline == pipeline else None
    if mine is not None and _is_of_now(server, mine, key):
        return mine, ""
    if plan is not None and (stored := await _stored_deep_run(server, plan, key, pipeline)) is not None:
        server.results.remember_deep(stored)
        server.activity.results_changed()
        return stored, ""
    touching = server.results.deep_runs_touching(key)
    others = [ended for ended in touching if ended is not mine and ended.report.pipeline == pipeline]
    for ended in others:
        if _is_of_now(server, ended, key):
            return ended, ""
    running = server.runs.current(plan.entry.key) if plan else None
    if running is not None and not _runs_deep_as_now(server, running, pipeline):
        running = None
    if running is not None and (so_far := await _so_far(server, running, enough)) is not None:
        return so_far, ""
    if may_run:
        return await _run_deep(server, document, plan, pipeline, running, enough)
    if mine is not None:
        return mine, _OUTDATED
    older = others[0] if others else await _older_deep_run(server, plan, document, pipeline)
    if older is not None:
        return older, _OUTDATED
    return None, "This file has no deep run yet. Run it with Analyze This File." if plan else no_entry(path)


async def _older_deep_run(server: IrscopeServer, plan: Plan | None, document: Document, pipeline: str) -> Ended | None:
    """The store's newest deep run of what runs a document, if the document was a part of it."""
    script = plan.entry.stored_script if plan else notebook_of(document.path) or document.path
    older = await server.archive.newest(script, Lane.DEEP, pipeline=pipeline)
    if older is None or document.key not in files_of(older.report):
        return None
    return Ended(document.path, Lane.DEEP, older.source, older.report, older.texts)


async def _stored_deep_run(server: IrscopeServer, plan: Plan, key: FileKey, pipeline: str) -> Ended | None:
    """The store's newest deep run of what runs a document, if it is known to have had the texts as they are now."""
    entry = plan.entry
    source = digest_of("\n".join(server.texts.lines(entry.file))) if entry.kind.is_file else None
    stored = await server.archive.newest(entry.stored_script, Lane.DEEP, source, pipeline)
    if stored is None or not (plan.own or server.activity.has_text(stored, key)):
        return None
    ended = await server.activity.ended_of(stored, plan)
    return ended if _is_of_now(server, ended, key) else None


def _is_of_now(server: IrscopeServer, ended: Ended, key: FileKey) -> bool:
    """Whether a run had a file as it is now, and the other files that are open."""
    ran = ended.texts.get(key)
    return ran is not None and list(ran) == list(server.texts.lines(key)) and not server.texts.are_edited(ended.texts)


async def _run_deep(
    server: IrscopeServer,
    document: Document,
    plan: Plan | None,
    pipeline: str,
    running: Run | None,
    enough: Enough | None,
) -> tuple[Ended | None, str]:
    if not server.trusted:
        return None, NOT_TRUSTED
    if plan is None:
        return None, no_entry(document.path)
    run = running or await server.activity.start(document, Lane.DEEP, pipeline=pipeline)
    if run is None:
        return None, no_entry(document.path)
    with _cancelling(run if running is None else None):
        while not run.done.done():
            more_kernels = run.more_kernels
            if (so_far := await _so_far(server, run, enough)) is not None:
                return so_far, ""
            await asyncio.wait((more_kernels, run.done), return_when=asyncio.FIRST_COMPLETED)
    ended = run.done.result()
    if not ended.report.compiles:
        return (ended if ended.run else None), ended.report.outcome.message
    return ended, ""


def _runs_deep_as_now(server: IrscopeServer, run: Run, pipeline: str) -> bool:
    """Whether a run goes through the pipeline with the texts as they are now."""
    is_deep = run.live.lane is Lane.DEEP and run.spec.pipeline == pipeline
    return is_deep and not server.texts.are_edited(run.live.texts)


def no_entry(path: str) -> str:
    """Why nothing runs a file."""
    return (
        f"{os.path.basename(path)} only contains definitions, and no known run uses it. Choose the script or test that"
        " runs it (Choose Entry Script for This File, or the setting irscope.run.entry)."
    )


async def _so_far(server: IrscopeServer, run: Run, enough: Enough | None) -> Ended | None:
    """A run that goes on, as far as it is in the store, if that is enough."""
    if enough is None or not run.has_kernels:
        return None
    report = await server.archive.ask(lambda store: store.report(run.live.run))
    ended = await asyncio.to_thread(with_texts, run.live, report)
    return ended if enough(ended) else None


async def wait_for(run: Run) -> Ended:
    """The end of a run that a request has started, and that ends with the request if that is cancelled."""
    with _cancelling(run):
        return await asyncio.shield(run.done)


@contextlib.contextmanager
def _cancelling(run: Run | None) -> Iterator[None]:
    """A request that is cancelled meanwhile takes the run that it started with it."""
    try:
        yield
    except asyncio.CancelledError:
        if run is not None:
            run.cancel()
        raise
