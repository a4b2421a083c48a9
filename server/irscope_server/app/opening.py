"""The request that opens a trace from elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys

from irscope_server.app.server import IrscopeServer
from irscope_server.base.params import OpenTraceParams
from irscope_server.base.results import ArtifactPlace, OpenTraceResult, RunsChanged

_NOT_A_RUN = "This is a trace of PyTorch's profiler, which has no run of its own: irscope open prints whose time it is."


async def open_trace(server: IrscopeServer, params: OpenTraceParams) -> OpenTraceResult:
    """Open a trace as a run, or list an artifact, in a separate process: what is in them may be anything.

    A client that cancels its request ends the process.
    """
    path = server.path_of(params.uri)
    if path is None or not os.path.exists(path):
        return OpenTraceResult(None, "The file is not on this machine.")
    command = ["-m", "irscope", "open", path, "--json", "--store", server.archive.path]
    if params.run:
        command += ["--run", params.run]
    folder = server.path_of(params.folder) if params.folder else None
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=folder or os.path.dirname(path),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, told = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        lines = told.decode("utf-8", "replace").strip().split("\n")
        return OpenTraceResult(None, lines[-1].removeprefix("irscope: ") or "The trace cannot be opened.")
    report = json.loads(out)
    run, is_artifact = report.get("run"), "fit" in report  # a compiled artifact was not unpickled
    if not isinstance(run, str) or not (is_artifact or "script" in report):
        return OpenTraceResult(None, _NOT_A_RUN)
    if run:
        server.tell("irscope/runsChanged", RunsChanged(run, params.uri, running=False))
    if not is_artifact:
        return OpenTraceResult(run, "")
    places = [*report["fit"]["differences"], *report["not_portable"]]
    marked = tuple(ArtifactPlace(**one) for one in places if one["line"])
    return OpenTraceResult(run or None, "", report["text"], marked)
