"""The request that runs a document's script and measures what it compiled."""

from __future__ import annotations

import dataclasses

from irscope.protocol import DEFAULT_PIPELINE, Lane, OutcomeKind

from irscope_server.app.requests import NOT_A_FILE, NOT_TRUSTED, no_entry, wait_for
from irscope_server.app.server import IrscopeServer
from irscope_server.base.params import ProfileParams
from irscope_server.base.results import ProfileResult

_MOST_CALLS = 10_000


async def profile(server: IrscopeServer, params: ProfileParams) -> ProfileResult:
    """Run what runs a document through Inductor, measure it, and wait until the profile is in the store.

    It is a run like others: it has progress, and `irscope/cancel` and a newer run of the same entry cancel it.
    """
    path = server.path_of(params.uri)
    if path is None or not server.trusted:
        return ProfileResult(None, NOT_A_FILE if path is None else NOT_TRUSTED)
    if not 1 <= params.calls <= _MOST_CALLS:
        raise ValueError(f"Invalid number of calls: {params.calls} (1 to {_MOST_CALLS}).")
    plan = await server.activity.plan(params.uri, path)
    if plan is None:
        return ProfileResult(None, no_entry(path))
    spec = server.activity.spec_of(plan, Lane.DEEP, DEFAULT_PIPELINE)
    spec = dataclasses.replace(spec, symbolic_trace=False, targets=(), profile=params.calls)
    ended = await wait_for(server.activity.start_spec(params.uri, plan, spec), started_here=True)
    if ended.profile is None:
        if ended.report.outcome.kind is OutcomeKind.CANCELLED:
            return ProfileResult(None, "The measurement was cancelled.")
        return ProfileResult(None, ended.why_not_measured or ended.report.outcome.message)
    server.profiles.remember(plan.entry.stored_script, ended)
    server.activity.results_changed()
    return ProfileResult(ended.run, "")
