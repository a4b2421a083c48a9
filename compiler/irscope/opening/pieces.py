"""The pieces of a model that are compiled by themselves, for several sizes each: what became of each piece and size.

vLLM writes ``vllm_piecewise_compile_start`` before it compiles a piece for a range of sizes, and the graph of each piece
once (``vllm_submod_…``).  What Inductor writes until the next start belongs to that piece and range.  The
names of these records are from vLLM's published source.  In a trace without them `CompiledPieces` looks for pieces.
"""

from __future__ import annotations

import dataclasses
import json
import re

from irscope.events.trace import Record
from irscope.opening.alike_graphs import alike
from irscope.opening.compiled_pieces import CompiledPieces
from irscope.protocol import Piece

_START = "vllm_piecewise_compile_start"
_GRAPH = re.compile(r"vllm_(?:submod|subgraph)_")
_CACHE = {"fx_graph_cache_hit": "hit", "fx_graph_cache_miss": "miss", "fx_graph_cache_bypass": "bypass"}
_COMPILED = ("inductor_output_code", "fx_graph_cache_hit")
_MOST = 20_000
_DAY = 86_400.0


class Pieces:
    """Collects the pieces while the records of a log are read."""

    def __init__(self) -> None:
        self._found: list[Piece] = []
        self._others = CompiledPieces()
        self._graphs: dict[str, str] = {}
        self._began = 0.0

    def take(self, record: Record, seconds: float) -> None:
        """One record, with the time of day at which it was written; 0 if that is not known."""
        if not self._found:
            self._others.take(record, seconds)
        if record.event == _START:
            self._start(record, seconds)
        elif record.event == "graph_dump" and _GRAPH.match(name := str(record.facts.get("name", ""))):
            if self._found:
                self._graphs.setdefault(self._found[-1].name or name, alike(record.payload))
        elif self._found and seconds and record.event.startswith(("fx_graph", "inductor", "aot", "after_", "before_")):
            last = self._found[-1]
            cache = _CACHE.get(record.event, last.cache)
            self._found[-1] = dataclasses.replace(
                last, cache=cache, compiled=last.compiled or record.event in _COMPILED,
                seconds=round((seconds - self._began) % _DAY, 6),
            )  # fmt: skip

    def _start(self, record: Record, seconds: float) -> None:
        try:
            facts = json.loads(record.payload)
        except (ValueError, RecursionError):
            return
        if not isinstance(facts, dict) or len(self._found) >= _MOST:
            return
        low, high = (facts.get(f"compile_range_{end}") for end in ("start", "end"))
        if not isinstance(low, int) or not isinstance(high, int):
            return
        index, is_single = facts.get("piecewise_index"), bool(facts.get("is_single_size")) or low == high
        self._began = seconds
        self._found.append(
            Piece(
                index=index if isinstance(index, int) else len(self._found),
                name=str(facts.get("submod_name") or f"piece {index}")[:200],
                smallest=low,
                largest=low if is_single else high,
                cuda_graph=facts.get("is_cudagraph_capture_size") is True,
                size=str(low) if is_single else f"{low}–{high}",
                compile=record.compile or "",
            )
        )

    def folded(self) -> tuple[Piece, ...]:
        """All pieces and ranges; those with the graph of an earlier piece name it."""
        if not self._found:
            return self._others.folded()
        first: dict[str, str] = {}
        like: dict[str, str] = {}
        for name, graph in self._graphs.items():
            like[name] = first.setdefault(graph, name) if graph else name
        return tuple(dataclasses.replace(one, like=like.get(one.name, one.name)) for one in self._found)
