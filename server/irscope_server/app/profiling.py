"""The request that runs a document's script and measures what it compiled."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

from irscope.pipelines.registry import pipeline_named
from irscope.protocol import DEFAULT_PIPELINE, Lane, Message, OutcomeKind, Progress
from irscope.store.store import Store

from irscope_server.app.deep_run import NOT_TRUSTED, no_entry, wait_for
from irscope_server.app.requests import NOT_A_FILE
from irscope_server.app.server import IrscopeServer
from irscope_server.base.params import ProfileParams
from irscope_server.base.results import ProfileResult
from irscope_server.running.measurements import Say
from irscope_server.running.plans import Plan

if TYPE_CHECKING:
    from irscope.driver.driver import RunSpec

_MOST_CALLS = 10_000
_CANCELLED = "The measurement was cancelled."


async def profile(server: IrscopeServer, params: ProfileParams) -> ProfileResult:
    """Run what runs a document through Inductor, measure it, and wait until the profile is in the store.

    It is a run like others: it has progress, and `irscope/cancel` and a newer run of the same entry cancel it.  Against
    pipelines, or without breaks, it is many processes by turns, which take minutes.
    """
    document = server.document(params.uri)
    if document is None or not server.trusted:
        return ProfileResult(None, NOT_A_FILE if document is None else NOT_TRUSTED)
    against = tuple(name for name in dict.fromkeys(params.against) if pipeline_named(name).name != DEFAULT_PIPELINE)
    if not 1 <= params.calls <= _MOST_CALLS:
        raise ValueError(f"Invalid number of calls: {params.calls} (1 to {_MOST_CALLS}).")
    plan = await server.activity.plan(document)
    if plan is None:
        return ProfileResult(None, no_entry(document.path))
    spec = server.activity.spec_of(plan, Lane.DEEP, DEFAULT_PIPELINE)
    spec = dataclasses.replace(spec, symbolic_trace=False, targets=(), profile=params.calls, memory=params.memory)
    if against or params.without_breaks:
        return await _further(server, params, plan, dataclasses.replace(spec, profile=params.calls), against)
    ended = await wait_for(server.activity.start_spec(params.uri, plan, spec))
    if ended.profile is None:
        if ended.report.outcome.kind is OutcomeKind.CANCELLED:
            return ProfileResult(None, _CANCELLED)
        return ProfileResult(None, ended.why_not_measured or ended.report.outcome.message)
    server.profiles.remember(plan.entry.stored_script, ended)
    server.activity.results_changed()
    return ProfileResult(ended.run, "")


async def _further(
    server: IrscopeServer, params: ProfileParams, plan: Plan, spec: RunSpec, against: tuple[str, ...]
) -> ProfileResult:
    from irscope.driver.profiling import NotMeasured, profiled
    from irscope.provenance.trails import keep_trails

    def work(say: Say, stop: threading.Event) -> str:
        def see(message: Message) -> None:
            if isinstance(message, Progress):
                say(message.text)

        with Store(server.archive.path) as store:
            run, _, _ = profiled(
                spec, store, on_message=see, on_output=lambda stream, text: None, cancel=stop, against=against,
                without_breaks=params.without_breaks,
            )  # fmt: skip
            keep_trails(store, run)
            store.tidy(run)
        return run

    title = f"irscope: profiling {plan.entry.name}"
    try:
        run = await server.measurements.measure(params.uri, plan.entry.key, title, work, lambda run: [run])
    except NotMeasured as error:
        was_cancelled = error.outcome is not None and error.outcome.kind is OutcomeKind.CANCELLED
        return ProfileResult(None, _CANCELLED if was_cancelled else str(error))
    server.profiles.forget(plan.entry.stored_script)
    server.activity.results_changed()
    return ProfileResult(run, "")
