"""A run of the store from a compiled artifact: its graphs and output code go to the very readers that listen to a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator

from irscope.ir.artifacts.contents import Artifact
from irscope.ir.artifacts.kinds import PROGRAM
from irscope.ir.cpp_wrapper import kernels_of
from irscope.ir.graph_statements import ORIGIN
from irscope.ir.nodes import operation_count
from irscope.opening.paths import Paths, Roots
from irscope.opening.records import RawRecord
from irscope.opening.trace_run import Reading, new_run
from irscope.opening.warnings import Warnings
from irscope.pipeline_captures.inductor.kernels import Kernels
from irscope.pipelines import aotinductor, export, inductor
from irscope.pipelines.aotinductor.stages import WRAPPER
from irscope.pipelines.export.stages import EXPORTED_PROGRAM
from irscope.protocol import CaptureGap, Compile, CompileOutcome
from irscope.store.store import Store

_NOT_HERE = CaptureGap(
    "what an artifact does not have: Dynamo's graph, passes, fusion decisions, times",
    "PyTorch does not save them. irscope run has them.",
)
_INFERENCE, _FORWARD, _BACKWARD = "aot_inference_graph", "aot_forward_graph", "aot_backward_graph"


def open_as_run(artifact: Artifact, store: Store) -> str:
    """Writes the stages of an artifact into the store as a run, and returns the run's ID; empty if it has no stages."""
    wrapper = next((text for name, text in artifact.graphs.items() if name.endswith(".wrapper.cpp")), "")
    program = next(iter(artifact.graphs.values()), "") if artifact.kind == PROGRAM else ""
    if not (artifact.compiled or wrapper or program):
        return ""
    pipeline = aotinductor.PIPELINE if wrapper else export.PIPELINE if program else inductor.PIPELINE
    with new_run(artifact.path, store, {}, pipeline.name, "artifact") as run:
        reading = Reading(run, store, Paths(Roots(os.getcwd())), Warnings(False), lambda _: None)
        reading.take_all(_records(artifact))
        if wrapper or program:
            _put_program(reading, artifact, wrapper, program)
        reading.end(_NOT_HERE)
        if torch := artifact.made_for.get("PyTorch"):
            store.set_torch(run, torch)
    return run


def _records(artifact: Artifact) -> Iterator[RawRecord]:
    """What PyTorch would have written into a trace; the compiles are numbered as they are found."""
    for number, texts in enumerate(artifact.compiled):
        ids = {"frame_id": number, "frame_compile_id": 0}
        name, file, line = _function(artifact, texts)
        frame = {"filename": file, "name": name.rpartition(".")[2], "line": line}
        yield RawRecord({"dynamo_start": {"stack": [frame]}, **ids}, "", 0)
        is_inference = all(event != _BACKWARD for event, _ in texts)
        for event, text in texts:
            event = _INFERENCE if event == _FORWARD and is_inference else event
            yield RawRecord({event: {}, **ids}, text, 0)
        count = max((operation_count(None, text) for event, text in texts if event.endswith("_graph")), default=0)
        yield RawRecord({"compilation_metrics": {"graph_op_count": count}, **ids}, "", 0)


def _function(artifact: Artifact, texts: list[tuple[str, str]]) -> tuple[str, str, int]:
    """What was compiled: its name, file and line.  A cache does not say it: the user's function of its first node."""
    if artifact.functions and len(artifact.compiled) == 1:
        return artifact.functions[0]
    lines = (line for event, text in texts if event.endswith("_graph") for line in text.split("\n"))
    found = next((match for line in lines if (match := ORIGIN.match(line))), None)
    return (found["function"], found["file"], int(found["line"])) if found else ("?", "", 1)


def _put_program(reading: Reading, artifact: Artifact, wrapper: str, program: str) -> None:
    """An exported program, or the wrapper of a package and its kernels, which no trace has in this form."""
    name, file, line = (artifact.functions or [("program", "", 1)])[0]
    line = line or next((first for of, first, *_ in artifact.code if of == file), 1)
    compile = Compile("0", name, file, line, CompileOutcome.COMPILED, 0, operation_count(None, program), 0.0)
    reading.book.put_compile(compile)
    if program:
        reading.book.put_stage(compile.id, EXPORTED_PROGRAM.name, program)
        return
    id = reading.book.put_stage(compile.id, WRAPPER.name, wrapper)
    kernels = kernels_of(wrapper, "\n".join(artifact.kernels.values()))
    Kernels(reading.book).written(compile.id, id, wrapper, False, kernels, WRAPPER)
