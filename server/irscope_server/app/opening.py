"""The request that opens a trace from elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

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
    result = _result(json.loads(out))
    if result.run is not None:
        server.tell("irscope/runsChanged", RunsChanged(result.run, params.uri, running=False))
    return result


def _result(report: dict[str, Any]) -> OpenTraceResult:
    """What `irscope open --json` printed; an artifact may have no run."""
    run, fit = report.get("run"), report.get("fit")
    if fit is None:
        is_run = isinstance(run, str) and "script" in report
        return OpenTraceResult(run, "") if is_run else OpenTraceResult(None, _NOT_A_RUN)
    places = [*fit["differences"], *report["not_portable"]]
    return OpenTraceResult(
        run or None, "", report["text"], tuple(ArtifactPlace(**one) for one in places if one["line"])
    )
