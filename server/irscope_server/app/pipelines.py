"""The request for all pipelines and their status."""

from __future__ import annotations

import asyncio
import contextlib

from irscope.driver.availability import availability_of, trials_file
from irscope.pipelines.registry import pipelines as known_pipelines

from irscope_server.app.server import IrscopeServer
from irscope_server.base.params import PipelinesParams
from irscope_server.base.results import PipelinesResult

_one_at_a_time = asyncio.Lock()
"""Two lists that are open at once do not try the same pipelines twice."""


async def pipelines(server: IrscopeServer, params: PipelinesParams) -> PipelinesResult:
    """All pipelines, and whether each works in the interpreter that runs a document.

    No process is started while the workspace is not trusted.
    """
    if not server.trusted:
        raise ValueError("The workspace is not trusted, so its interpreter is not asked which pipelines work.")
    settings = await server.settings_for(params.uri) if params.uri else server.settings
    document = server.document(params.uri) if params.uri else None
    plan = await server.activity.plan(document) if document is not None else None
    python = plan.python if plan else settings.interpreter
    listed = [pipeline for pipeline in known_pipelines().values() if not params.only or pipeline.name in params.only]
    # What is known is said at once: the trial of a list that was closed may take minutes.
    async with _one_at_a_time if params.trials else contextlib.nullcontext():
        available = await asyncio.to_thread(availability_of, listed, python, trials_file(), with_trials=params.trials)
    return PipelinesResult(python, settings.pipeline, tuple(available))
