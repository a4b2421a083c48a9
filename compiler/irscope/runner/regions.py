"""Keeps the graphs that Dynamo hands to its backend, and times them alone: compiled, and without compile.

A graph is called with copies of the inputs that it has in a call of its program; parameters are not copied, since a CUDA
graph reads them where they are.
"""

from __future__ import annotations

import copy
import functools
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from irscope.internals import backends
from irscope.internals.compile_context import current_compile
from irscope.internals.hooks import Hook
from irscope.runner.rounds import Measured
from irscope.runner.tensors import cloned
from irscope.vocabulary.records import dataclass

_MOST_REGIONS = 64
_MOST_GRAPHS = 1000
"""A script that compiles more is measured without its later ones: each graph is kept."""
_LATER = f"The script compiles more than {_MOST_GRAPHS} graphs; this is a later one."
_MOST_SECONDS = 20.0
"""For all regions; those that come later are not measured."""


@dataclass
class Region:
    """A graph, as it was compiled and as it is, with the inputs of one call; or why it cannot be called alone."""

    compile: str
    graph: Any
    compiled: Callable[..., Any]
    why_not: str = ""
    called: Measured | None = None


class Regions:
    """Sees all graphs, and the inputs of those that run while `watching` is true."""

    def __init__(self) -> None:
        self.watching = False
        self._count = 0
        self._seen: list[Region] = []

    def hook(self) -> Hook:
        """What sees the graphs."""
        return backends.watched(self._compiled)

    def _compiled(self, backend: Any, graph: Any, inputs: Any) -> Any:
        compile = current_compile()
        own, why_not = _own(graph) if self._count < _MOST_GRAPHS else (None, _LATER)
        compiled = backend(graph, inputs)
        if compile is None or not callable(compiled):
            return compiled
        self._count += 1
        region = Region(compile[0], own, compiled, why_not)

        @functools.wraps(compiled)
        def called(*args: Any) -> Any:
            if self.watching:
                self._see(region, args)
            return compiled(*args)

        return called

    def _see(self, region: Region, args: tuple[Any, ...]) -> None:
        torch: Any = sys.modules["torch"]
        if region in self._seen:
            return
        if not region.why_not and len(self._seen) >= _MOST_REGIONS:
            region.why_not = f"A call goes through more than {_MOST_REGIONS} graphs; this is a later one."
        if region.why_not:
            self._seen.append(region)
            return
        copies = iter(cloned([one for one in args if not _is_kept_in_place(torch, one)]))
        mine = tuple(one if _is_kept_in_place(torch, one) else next(copies) for one in args)
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        region.called = Measured(region.graph, region.compiled, mine, {}, *modes)
        self._seen.append(region)

    def of(self, call: Callable[[], object]) -> list[Region]:
        """The regions that a call goes through, in their order."""
        self._seen, self.watching = [], True
        try:
            call()
        finally:
            self.watching = False
        return self._seen


def facts_of(regions: Iterable[Region], measured: Callable[[Measured], dict[str, Any]]) -> list[dict[str, Any]]:
    """What was measured of each, or why it was not."""
    until, found = time.perf_counter() + _MOST_SECONDS, list[dict[str, Any]]()
    for region in regions:
        facts: dict[str, Any] = {"compile": region.compile, "why_not": ""}
        one, region.called = region.called, None
        if region.why_not:
            facts["why_not"] = region.why_not
        elif one is None or time.perf_counter() > until:
            facts["why_not"] = "There was no time for it: other regions took too long."
        else:
            facts |= measured(one)
        found.append(facts)
    return found


def _own(graph: Any) -> tuple[Any, str]:
    """A graph module of its own, which the backend does not change; or None, and why there is none."""
    try:
        return sys.modules["torch"].fx.GraphModule(graph, copy.deepcopy(graph.graph)), ""
    except Exception as error:  # noqa: BLE001  one that cannot be copied is not measured alone
        return None, f"Its graph cannot be copied: {type(error).__name__}: {error}".splitlines()[0]


def _is_kept_in_place(torch: Any, value: Any) -> bool:
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")
