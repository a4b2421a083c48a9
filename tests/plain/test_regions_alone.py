"""Graphs that cannot be called alone are told with the reason."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.runner import regions
from irscope.runner.regions import Regions, facts_of


def _graph_module(_: object, graph: str) -> str:
    if graph == "broken":
        raise RuntimeError("a node without a copy\nand more")
    return graph


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Regions:
    torch = SimpleNamespace(
        fx=SimpleNamespace(GraphModule=_graph_module),
        nn=SimpleNamespace(Parameter=type("Parameter", (), {})),
        is_grad_enabled=lambda: True,
        is_inference_mode_enabled=lambda: False,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(regions, "cloned", lambda value: value)
    return Regions()


def compiled(watched: Regions, monkeypatch: pytest.MonkeyPatch, graphs: list[str]) -> list[Any]:
    """The graphs, as a backend hands them back; the compile of graph number n is called n."""
    made = []
    for at, graph in enumerate(graphs):
        monkeypatch.setattr(regions, "current_compile", lambda at=at: (str(at), 0))
        made.append(watched._compiled(lambda *_: lambda *args: args, SimpleNamespace(graph=graph), ()))
    return made


def reasons(watched: Regions, calls: list[Any]) -> list[tuple[str, str]]:
    called = watched.of(lambda: [call(1) for call in calls])
    return [(one["compile"], one["why_not"]) for one in facts_of(called, lambda _: {})]


def test_a_graph_that_cannot_be_copied(watched: Regions, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = compiled(watched, monkeypatch, ["whole", "broken"])
    assert reasons(watched, calls) == [
        ("0", ""),
        ("1", "Its graph cannot be copied: RuntimeError: a node without a copy"),
    ]


def test_more_graphs_than_are_kept(watched: Regions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "_MOST_GRAPHS", 2)
    monkeypatch.setattr(regions, "_MOST_REGIONS", 1)
    (_, first), (_, second), (_, third) = reasons(watched, compiled(watched, monkeypatch, ["one", "two", "three"]))
    assert not first
    assert second == "A call goes through more than 1 graphs; this is a later one."
    assert third == "The script compiles more than 1000 graphs; this is a later one."
