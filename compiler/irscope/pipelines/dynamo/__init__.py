"""The pipeline ``dynamo``: the backend that the script names, and whether it really ran."""

from __future__ import annotations

from pathlib import Path

from irscope.pipelines.base import Pipeline, Variants
from irscope.pipelines.dynamo.stages import NOT_COMPILED, STAGES

_WATCHING = (Path(__file__).parents[2] / "internals" / "graph_runs.py").read_text("utf-8")
_TRIAL = """

import torch
def program(x):
    return torch.relu(x.sin() * 2 + 1)
name, seen = (sys.argv[1:] or ["eager"])[0], []
backend = torch._dynamo.lookup_backend(name)
def watched(graph, inputs):
    before = text_of(graph)
    try:
        returned = backend(graph, inputs)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}".partition(chr(10))[0])
    def run(*args):
        with Watch() as watch:
            result = returned(*args)
        seen.append((is_graph_itself(returned, graph) or ran_itself(watch, graph)) and text_of(graph) == before)
        return result
    return run
x = torch.ones(8)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(program, backend=watched)(x), program(x), rtol=1e-3, atol=1e-3)
if not seen:
    sys.exit("it was not called, or what it returned did not run")
if seen[0] and name != "eager":
    sys.exit("it compiled nothing: the graph ran as it was, in eager mode")
"""
_INSTALLED = """\
from importlib.metadata import entry_points
for one in entry_points(group="torch_dynamo_backends"):
    print(one.name)
"""

PIPELINE = Pipeline(
    name="dynamo",
    title="torch.compile with the backend that the script names",
    stages=STAGES,
    findings=(NOT_COMPILED,),
    capture="irscope.pipeline_captures.dynamo.capture:BackendCapture",
    trial=_WATCHING + _TRIAL,
    variants=Variants("backend", _INSTALLED),
)
