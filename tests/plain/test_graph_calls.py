"""The lines that call compiled graphs are told once for each compile."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
from irscope.internals import graph_calls
from irscope.internals.graph_calls import GraphCalls, Lines


class CompiledFxGraph:
    """As Inductor's, which has no hash."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, inputs: Any) -> Any:
        return inputs

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None: ...


def test_a_graph_in_the_place_of_one_that_is_gone_has_lines_of_its_own() -> None:
    told: list[tuple[str, bool, Lines]] = []
    compiles = ["0/0", "0/0#2"]
    calls = GraphCalls(lambda: compiles[0], lambda *call: told.append(call))
    module = types.ModuleType("output_code")
    module.CompiledFxGraph = CompiledFxGraph  # type: ignore[attr-defined]
    undo = calls.hooks()[0].apply(module)
    graph = CompiledFxGraph()
    for _ in range(
        2
    ):  # the second has the identity of the first, as a graph made after `torch._dynamo.reset()` may have
        graph.post_compile((), None, {"is_backward": True})
        for _ in range(3):
            assert graph(1) == 1
        compiles.pop(0)
    undo()
    assert [call[:2] for call in told] == [("0/0", True), ("0/0#2", True)]
    assert {call[2][0][0] for call in told} == {__file__}


class Options:
    """What ``torch.compile`` makes of its options."""


def test_a_further_call_of_torch_compile_leads_to_the_code_that_it_reuses(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Options(), Options()
    asked: dict[Any, Lines] = {first: (("train.py", 3),), second: (("train.py", 7),)}
    monkeypatch.setattr(graph_calls, "_ASKED", asked)
    wrapper: dict[str, Callable[..., Any]] = {}
    exec(compile("def call(self, graph): return graph(1)", "/lib/torch/_dynamo/eval_frame.py", "exec"), wrapper)
    told: list[Lines] = []
    calls = GraphCalls(lambda: "0/0", lambda compile, backward, lines: told.append(lines))
    module = types.ModuleType("output_code")
    module.CompiledFxGraph = CompiledFxGraph  # type: ignore[attr-defined]
    undo = calls.hooks()[0].apply(module)
    graph = CompiledFxGraph()
    graph.post_compile((), None, {})
    for options in (first, second, second):  # called from one line
        wrapper["call"](options, graph)
    undo()
    assert [lines[-1] for lines in told] == [("train.py", 3), ("train.py", 7)]
    assert len({lines[:-1] for lines in told}) == 1


def resumed(graph: Any) -> Any:
    return graph(1)


def test_code_that_dynamo_made_may_call_a_graph_though_its_constants_have_no_hash() -> None:
    told: list[Lines] = []
    calls = GraphCalls(lambda: "0/0", lambda compile, backward, lines: told.append(lines))
    module = types.ModuleType("output_code")
    module.CompiledFxGraph = CompiledFxGraph  # type: ignore[attr-defined]
    undo = calls.hooks()[0].apply(module)
    graph = CompiledFxGraph()
    graph.post_compile((), None, {})
    code = resumed.__code__
    assert types.FunctionType(code.replace(co_consts=(*code.co_consts, {})), {})(graph) == 1
    undo()
    assert told[0][0] == (__file__, code.co_firstlineno + 1)
