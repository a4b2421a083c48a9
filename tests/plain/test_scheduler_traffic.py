"""What a kernel with several results moves, whose buffer has no dtype: Helion's, in Inductor's schedule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from irscope.internals import scheduler_traffic


class Graph:
    def get_dtype(self, name: str) -> Any:
        if name == "several":
            raise NotImplementedError("Multi-output templates do not have a single dtype")
        return SimpleNamespace(itemsize=4)


class Node:
    read_writes = SimpleNamespace(reads=(), writes=())

    def get_read_write_buffer_accesses(self, **_: bool) -> dict[str, int]:
        return {"one": 64, "several": 0}


def test_a_buffer_of_several_results_has_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_traffic, "lowered_graph", Graph)
    monkeypatch.setattr(scheduler_traffic, "_addressed", lambda node, name, reads: 8)
    assert scheduler_traffic.bytes_accessed(Node(), reads=False) == {"one": 32, "several": 0}
