"""What a capture leaves undone because nobody would see it: no copy, no record, no key and no text in vain."""

from __future__ import annotations

import logging
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from irscope.events.trace import Record, TraceHandler
from irscope.internals import loop_text as looptext
from irscope.internals import unread
from support import run_captured, run_forked, write

COUNTING = """\
import torch
import torch._inductor.codecache as codecache
import torch._inductor.graph as graph
from torch._inductor.async_compile import AsyncCompile
from torch.fx.traceback import has_preserved_node_meta

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None
preserved, pickled = set(), []
lower, dumps = graph.GraphLowering.run_node, codecache.FxGraphCachePickler.dumps


def run_node(self, node):
    preserved.add(has_preserved_node_meta())
    return lower(self, node)


def counted(self, what):
    pickled.append(type(what).__name__)
    return dumps(self, what)


graph.GraphLowering.run_node = run_node
codecache.FxGraphCachePickler.dumps = counted


@torch.compile
def f(x):
    return (x.sin() * 2).sum()


f(torch.ones(8))
print(preserved, pickled.count("FxGraphHashDetails"))
"""
TELLING = """\
import torch
import torch._logging._internal as logs

made = []


class Event(dict):
    def items(self):
        made.append("text of an event")
        return super().items()


logs.trace_structured("first", expect_trace_id=False)  # PyTorch's own handler goes with it where nobody traces
for event in ("describe_tensor", "dynamo_output_graph"):
    logs.trace_structured(event, lambda: made.append(event) or {}, expect_trace_id=False)
for name in ("after_joint_graph", "anything_else"):
    logs.trace_structured_artifact(name, "string", lambda: made.append(name))
logs.trace_structured("chromium_event", payload_fn=lambda: Event(name="dynamo", ph="B", ts=1), expect_trace_id=False)
print(made)
"""


@pytest.mark.nightly  # a run with empty caches
def test_a_cold_run_makes_nothing_in_vain(tmp_path: Path) -> None:
    """As without irscope nothing is copied while a graph is lowered, and its key is made once."""
    script = write(tmp_path, COUNTING)
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_forked(script, tmp_path / "runs.db", "deep", env=env)
    assert ran.stdout == "{False} 1\n"
    assert ran.report.capture_gaps == ()
    (tmp_path / "cache" / "fxgraph" / "ab" / "fabc").mkdir(parents=True)  # of another run: it may be the user's
    again = run_forked(script, tmp_path / "runs.db", "deep", env=env)
    assert again.stdout == "{False} 2\n"


def test_records_that_nobody_reads_are_not_made(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, TELLING), tmp_path / "runs.db")
    assert ran.stdout == "['dynamo_output_graph', 'anything_else']\n"


def test_an_artifact_without_a_name_is_left_to_pytorch() -> None:
    def fails() -> dict[str, Any]:
        raise RuntimeError("no metadata")

    own, internal = TraceHandler(print), SimpleNamespace(trace_log=logging.Logger("none"), trace_structured=print)
    internal.trace_log.addHandler(own)
    undo = unread.hook(TraceHandler).apply(cast(types.ModuleType, internal))

    source = "def trace_structured(name, metadata_fn):\n    return internal.trace_log.handlers"
    theirs: dict[str, Any] = {"internal": internal}
    exec(compile(source, "/site-packages/torch/_logging/_internal.py", "exec"), theirs)
    trace_structured: Callable[[str, Callable[[], object]], Any] = theirs["trace_structured"]

    assert trace_structured("artifact", lambda: {"name": "after_joint_graph"}) == []
    assert trace_structured("artifact", lambda: ("interned", 3)) == [own]
    assert trace_structured("artifact", fails) == [own]
    undo()


def test_a_timed_event_is_handed_over_as_it_is() -> None:
    import torch._guards  # noqa: F401  what knows the compile that is going on

    got: list[Record] = []
    own, internal = TraceHandler(print, got.append), SimpleNamespace(trace_log=logging.Logger("none"))
    internal.trace_structured = print
    internal.trace_log.addHandler(own)
    undo = unread.hook(TraceHandler).apply(cast(types.ModuleType, internal))
    source = "def trace_structured(name, metadata_fn, payload_fn):\n    return internal.trace_log.handlers"
    theirs: dict[str, Any] = {"internal": internal}
    exec(compile(source, "/site-packages/torch/_logging/_internal.py", "exec"), theirs)

    event = {"name": "dynamo", "ph": "B", "ts": 1.5}
    assert theirs["trace_structured"]("chromium_event", dict, lambda: event) == []
    assert [(one.event, one.facts["event"], one.compile) for one in got] == [("chromium_event", event, None)]
    assert got[0].facts["thread"] == threading.get_ident()
    # What is not as expected is left to PyTorch, and so is everything where others listen.
    assert theirs["trace_structured"]("chromium_event", dict, lambda: "text") == [own]
    internal.trace_log.addHandler(logging.NullHandler())
    assert len(theirs["trace_structured"]("chromium_event", dict, lambda: event)) == 2
    assert len(got) == 1
    undo()


def test_who_traces_as_well_gets_every_record(tmp_path: Path) -> None:
    env = {"TORCH_TRACE": str(tmp_path / "trace")}
    ran = run_captured(write(tmp_path, TELLING), tmp_path / "runs.db", env=env)
    assert ran.stdout == (
        "['describe_tensor', 'dynamo_output_graph', 'after_joint_graph', 'anything_else', 'text of an event']\n"
    )


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Bodies of loops under the hook, how often PyTorch printed one, and how often one was printed at all."""
    from torch import fx
    from torch._inductor import loop_body

    times: list[str] = []
    all_times: list[fx.Graph] = []
    original, code_of = loop_body.LoopBodyBlock.debug_str, fx.Graph.python_code

    def counted_code(self: fx.Graph, *args: Any, **kwargs: Any) -> Any:
        all_times.append(self)
        return code_of(self, *args, **kwargs)

    def counted(self: Any, name: str = "block") -> Any:
        times.append(name)
        return original(self, name)

    def body(constant: float, last: str = "store") -> Any:
        graph = fx.Graph()
        ops = graph.placeholder("ops")
        value = graph.call_method("mul", (ops, graph.call_method("load", (ops, "arg0")), constant))
        graph.output(graph.call_method(last, (ops, "buf0", value)))
        block: Any = loop_body.LoopBodyBlock.__new__(loop_body.LoopBodyBlock)
        block.body, block.graph = SimpleNamespace(submodules={}), graph
        return block

    monkeypatch.setattr(loop_body.LoopBodyBlock, "debug_str", counted)
    monkeypatch.setattr(fx.Graph, "python_code", counted_code)
    undo = looptext.hook().apply(sys.modules["torch._inductor.loop_body"])
    yield SimpleNamespace(body=body, times=times, all_times=all_times, original=original)
    undo()
    assert loop_body.LoopBodyBlock.debug_str is counted


def test_bodies_that_do_the_same_are_printed_once(printed: Any) -> None:
    bodies = [printed.body(2.0), printed.body(2.0), printed.body(3.0), printed.body(2.0, "store_reduction")]
    texts = [block.debug_str("body") for block in bodies]
    assert len(printed.times) == 1  # the first, to see that ours is the same
    assert len(printed.all_times) == 1 + 3
    assert texts == [printed.original(block, "body") for block in bodies]
    assert texts[0] != texts[2] != texts[3]


def test_where_inductor_prints_in_another_way_it_prints_all(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looptext, "_text", lambda graph, name: "another text")
    bodies = [printed.body(2.0), printed.body(2.0), printed.body(3.0)]
    assert [block.debug_str("body") for block in bodies] == [printed.original(block, "body") for block in bodies]
    assert len(printed.times) == 2


def test_a_body_that_changes_is_printed_again(printed: Any) -> None:
    block = printed.body(2.0)
    before = block.debug_str("body")
    product = next(node for node in block.graph.nodes if node.target == "mul")
    product.args = (*product.args[:2], 4.0)
    assert block.debug_str("body") != before
    assert block.debug_str("other") != block.debug_str("body")
    assert block.debug_str("body") == printed.original(block, "body")
