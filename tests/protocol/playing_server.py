"""The real server, in which `irscope.driver.driver.execute` is played: no torch, no waiting, the same from run to run.

``IRSCOPE_TEST_PLAY`` names a JSON file, a list of acts.  Each has an ``outcome`` (kind), a ``message``, ``findings``,
``compiles`` (each ``[compile, [stage, …]]``), ``kernels`` as JSON of `irscope.protocol`, ``prints``, ``progress``, ``limit``, and
``seconds`` to wait before the end; ``pause`` are seconds between two findings.  Where the act names a file as ``until``, the kernels
in ``later`` come when it exists.  What was asked for stands in the file
``….asked`` beside it.  The n-th run plays the n-th act, the last act again and again.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from irscope.driver.driver import RunSpec
from irscope.protocol import (
    Compile,
    CompileSeen,
    EntryKind,
    Finding,
    FindingSeen,
    Kernel,
    KernelsWritten,
    Limit,
    Message,
    Origin,
    Outcome,
    OutcomeKind,
    Progress,
    StageRef,
    Started,
    from_json,
    to_json,
)
from irscope.store.store import Store
from irscope.usercode.source import decode_source, digest_of

_played = 0


def execute(
    spec: RunSpec,
    store: Store,
    *,
    on_start: Callable[[str], None],
    on_message: Callable[[Message], None],
    on_output: Callable[[str, str], None],
    cancel: threading.Event,
) -> tuple[str, Outcome]:
    global _played
    with open(os.environ["IRSCOPE_TEST_PLAY"]) as file:
        acts: list[dict[str, Any]] = json.load(file) or [{}]
    act = acts[min(_played, len(acts) - 1)]
    _played += 1
    _note(spec)
    text = spec.overlays.get(spec.script, "")
    if not text and spec.entry is EntryKind.SCRIPT:
        with open(spec.script, "rb") as script:
            text = decode_source(script.read())
    run = store.create_run(spec.stored_script, spec.args, spec.lane, digest_of(text), pipeline=spec.pipeline)
    on_start(run)
    on_message(Started("2.13.0"))
    store.set_torch(run, "2.13.0")
    on_message(Progress("playing"))
    for said in act.get("progress", []):
        on_message(Progress(*said))
    for stream, printed in act.get("prints", []):
        on_output(stream, printed)
    for facts, stages in act.get("compiles", []):
        compile = from_json(Compile, facts)
        store.put_compile(run, compile)
        for number, (stage, stage_text, *data) in enumerate(stages):
            store.put_stage(run, compile.id, from_json(StageRef, stage), stage_text, number, *data)
        on_message(CompileSeen(compile))
    for file, source in act.get("sources", {}).items():
        store.put_source(run, file, source)
    for facts in act.get("findings", []):
        if cancel.wait(act.get("pause", 0)):
            break
        finding = from_json(Finding, facts)
        store.put_finding(run, finding)
        on_message(FindingSeen(finding))
    begun = time.monotonic()
    kind = OutcomeKind(act.get("outcome", "completed"))
    _generate(store, run, act.get("kernels", []), on_message)
    while "until" in act and not os.path.exists(act["until"]) and not cancel.wait(0.01):
        pass
    _generate(store, run, act.get("later", []), on_message)
    while time.monotonic() - begun < act.get("seconds", 0):
        if cancel.wait(0.01):
            kind = OutcomeKind.CANCELLED
            break
    limit = Limit(act["limit"]) if "limit" in act else None
    place = Origin(*act["place"]) if "place" in act else None
    outcome = Outcome(kind, 0, act.get("message", ""), time.monotonic() - begun, limit, place)
    store.set_outcome(run, outcome)
    return run, outcome


def _generate(store: Store, run: str, kernels: list[Any], on_message: Callable[[Message], None]) -> None:
    generated = tuple(from_json(Kernel, facts) for facts in kernels)
    for kernel in generated:
        store.put_kernel(run, kernel)
    if generated:
        on_message(KernelsWritten(generated))


def _note(spec: RunSpec) -> None:
    """Adds what is asked for to a file beside the play, a JSON object a line."""
    asked = {
        "entry": spec.entry.value,
        "script": spec.script,
        "args": spec.args,
        "lane": spec.lane.value,
        "pipeline": spec.pipeline,
        "python": spec.python,
        "cwd": spec.cwd,
        "env": dict(spec.env or {}),
        "budget": to_json(spec.budget),
        "overlays": sorted(spec.overlays),
        "cells": spec.cells,
        "texts": {name: spec.overlays[name] for name in spec.cells},
    }
    with open(os.environ["IRSCOPE_TEST_PLAY"] + ".asked", "a") as file:
        file.write(json.dumps(asked) + "\n")


if __name__ == "__main__":
    from irscope_server.app.serve import serve_stdio

    sys.argv[1:] = []
    serve_stdio(execute)
