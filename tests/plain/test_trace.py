"""Records of PyTorch's trace, and the book of compiles that they fill."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.capture.stages import clean
from irscope.events.compiles import CompileBook
from irscope.events.trace import Record, TraceHandler, parse_record
from irscope.pipeline_captures.inductor.trace import is_backward
from irscope.pipelines.registry import position, stage_kind
from irscope.protocol import CompileOutcome

AT = {"frame_id": 2, "frame_compile_id": 1, "attempt": 3}


@pytest.mark.parametrize(
    ("metadata", "payload", "record"),
    [
        ({"dynamo_start": {"stack": []}, **AT}, None, Record("dynamo_start", {"stack": []}, "2/1", 3, "")),
        ({**AT, "has_payload": "x", "aot_joint_graph": {}}, "graph", Record("aot_joint_graph", {}, "2/1", 3, "graph")),
        (
            {"artifact": {"name": "recompile_reasons", "encoding": "json"}, **AT},
            "[]",
            Record("recompile_reasons", {"name": "recompile_reasons", "encoding": "json"}, "2/1", 3, "[]"),
        ),
        ({"str": ["file.py", 3]}, None, Record("str", {"text": "file.py", "index": 3}, None, 0, "")),
        ({"bwd_compilation_metrics": {}, "compiled_autograd_id": 0}, None, Record("bwd_compilation_metrics", {}, "!0", 0, "")),
        ({"x": {}, "compiled_autograd_id": 0, **AT}, None, Record("x", {}, "!0/2/1", 3, "")),
        ({"x": {}, "attempt": None}, b"bytes", Record("x", {}, None, 0, "")),
        ({"rank": 0, "thread": 1, "timestamp": "t"}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_records(metadata: dict[str, Any], payload: object, record: Record | None) -> None:
    assert parse_record(metadata, payload) == record


def test_the_handler_passes_over_what_is_no_event() -> None:
    seen: list[Record] = []
    handler = TraceHandler(seen.append)
    passed: tuple[Any, ...] = (None, {"chromium_event": {}}, {"rank": 0}, {"dynamo_start": {}, **AT})
    for metadata in passed:
        handler.handle(logging.makeLogRecord({"metadata": metadata, "payload": None}))
    assert [record.event for record in seen] == ["dynamo_start"]


def start(compile: str = "0/0", attempt: int = 0) -> Record:
    stack = [{"name": "caller", "filename": "a.py", "line": 1}, {"name": "f", "filename": "m.py", "line": 7}]
    return Record("dynamo_start", {"stack": stack}, compile, attempt, "")


def metrics(compile: str = "0/0", **facts: Any) -> Record:
    default = {"graph_op_count": 5, "entire_frame_compile_time_s": 0.25, "has_guarded_code": True}
    return Record("compilation_metrics", {**default, **facts}, compile, 0, "")


def fill(*records: Record) -> CompileBook:
    book = CompileBook()
    for record in records:
        name = book.name_of(record)
        assert name is not None
        book.note(record, name, None)
    return book


def test_a_compile_from_start_to_end() -> None:
    book = fill(start())
    compile = book.get("0/0")
    assert compile is not None
    assert (compile.function, compile.file, compile.line, compile.outcome) == ("f", "m.py", 7, CompileOutcome.RUNNING)
    compile = fill(start(), start(attempt=1), metrics(restart_reasons=["x"])).get("0/0")
    assert compile is not None
    assert (compile.outcome, compile.restarts, compile.graph_ops, compile.seconds) == (
        CompileOutcome.COMPILED,
        1,
        5,
        0.25,
    )


def test_the_code_object_knows_better_than_the_stack() -> None:
    book = CompileBook()
    compile = book.note(start(), "0/0", SimpleNamespace(co_name="g", co_filename="n.py", co_firstlineno=3))
    assert compile is not None
    assert (compile.function, compile.file, compile.line) == ("g", "n.py", 3)


@pytest.mark.parametrize(
    ("records", "outcome"),
    [
        ([metrics()], CompileOutcome.COMPILED),
        ([metrics(has_guarded_code=False)], CompileOutcome.SKIPPED),
        ([Record("dynamo_graph_break_reason", {}, "0/0", 0, "Graph break in user code"), metrics()], CompileOutcome.GRAPH_BREAK),
        ([Record("dynamo_graph_break_reason", {}, "0/0", 0, "… falling back to eager"), metrics()], CompileOutcome.SKIPPED),
        ([], CompileOutcome.RUNNING),
    ],
)  # fmt: skip
def test_outcomes(records: list[Record], outcome: CompileOutcome) -> None:
    compile = fill(start(), *records).get("0/0")
    assert compile is not None
    assert compile.outcome is outcome


def test_names_that_come_again_after_a_reset() -> None:
    """`torch._dynamo.reset()` makes PyTorch count from zero."""
    book = fill(start("0/0"), metrics("0/0"), start("0/1"), metrics("0/1"), start("0/0"))
    assert [book.name_of(Record("x", {}, id, 0, "")) for id in ("0/0", "0/1", "1/0")] == ["0/0#2", "0/1#2", "1/0"]
    book = fill(start("0/0"), metrics("0/0"), start("0/0"), metrics("0/0"), start("0/0"))
    assert book.get("0/0#3") is not None


def test_a_restart_is_no_new_compile() -> None:
    book = fill(start(), start(attempt=1), start(attempt=2))
    assert book.get("0/0#2") is None


def test_records_of_no_compile() -> None:
    book = CompileBook()
    assert book.name_of(Record("str", {}, None, 0, "")) is None
    assert book.note(metrics(), "0/0", None) is None


def test_the_backward_comes_after_the_forward_s_kernels() -> None:
    assert position("post-grad-graph", True) > position("kernel", False)
    assert position("kernel", False) > position("output-code", False) > position("dynamo-graph", False)


@pytest.mark.parametrize(
    ("name", "text", "backward"),
    [
        ("output-code", "# AOT ID: ['0_backward']\n", True),
        ("output-code", "# AOT ID: ['0_forward']\n", False),
        ("output-code", "# AOT ID: ['0_inference']\n" + "x" * 300 + "_backward']", False),
        ("post-grad-graph", "def forward(self, tangents_1):", True),
        ("post-grad-graph", "def forward(self, primals_1):", False),
        ("backward-graph", "def forward(self, tangents_1):", False),  # its own name says it
    ],
)
def test_what_belongs_to_the_backward(name: str, text: str, backward: bool) -> None:
    assert is_backward(stage_kind(name), text) is backward


def test_a_stage_has_no_frame_around_it() -> None:
    assert clean(Record("x", {}, None, 0, "\nclass G:\n    pass\n\n # graph id: 17\n")) == "class G:\n    pass\n"
    assert clean(Record("x", {}, None, 0, "text")) == "text\n"
