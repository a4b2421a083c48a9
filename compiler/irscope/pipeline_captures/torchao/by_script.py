"""Programs that the script quantizes itself: what it made of them, step by step."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.run_book import RunBook
from irscope.internals.hooks import Hook
from irscope.internals.quantizing import steps_hook
from irscope.pipeline_captures.torchao import pt2e
from irscope.pipelines.torchao import stages
from irscope.vocabulary.stages import StageKind

_STAGES = {"exported": stages.EXPORTED, "observed": stages.OBSERVED, "converted": stages.CONVERTED}


@dataclass(frozen=True)
class Step:
    """A graph of the quantization, as it is stored."""

    kind: StageKind
    text: str
    data: Any


def step_of(name: str, graph: Any, nodes: NodeWriter) -> Step:
    """The graph module after a step: ``exported``, ``observed`` or ``converted``."""
    return Step(_STAGES[name], graph.print_readable(print_output=False), nodes.describe(graph))


@dataclass(frozen=True)
class Steps:
    """What the script did to a graph module.

    Args:
        quantizer: The class of its quantizer; empty if it is not known.
        function: The code of the ``forward`` that was exported; None if it is not known.
    """

    made: tuple[Step, ...] = ()
    quantizer: str = ""
    function: types.CodeType | None = None


@dataclass
class StepsOfScript:
    """Sees the steps that a script takes, and keeps them as long as the graph module that they led to.

    Args:
        is_ours: Whether irscope takes the steps just now.
    """

    book: RunBook
    nodes: NodeWriter
    is_ours: Callable[[], bool]
    _known: weakref.WeakKeyDictionary[Any, Steps] = field(default_factory=weakref.WeakKeyDictionary)

    def hook(self) -> Hook:
        """The hook that sees the steps."""
        return steps_hook(self._see)

    def of(self, graph: Any) -> Steps:
        """The steps that led to a graph module; none if the script did not take them in this run."""
        return self._known.get(graph, Steps())

    def _see(self, step: str, given: Any, rest: tuple[Any, ...]) -> Callable[[Any], None] | None:
        if self.is_ours():
            return None
        before = [self.of(given)]
        if step == "observed":
            quantizer = type(rest[0]).__name__ if rest else ""
            first = functools.partial(step_of, "exported", given, self.nodes)
            self.book.caught(lambda: before.append(Steps((first(),), quantizer, _forward_of(given))))

        def add(made: Any) -> None:
            if step == "converted":
                pt2e.with_traces(made)
            steps = (*before[-1].made, step_of(step, made, self.nodes))
            self._known[made] = dataclasses.replace(before[-1], made=steps)

        return lambda made: self.book.caught(lambda: add(made))


def _forward_of(graph: Any) -> types.CodeType | None:
    """The code of the ``forward`` of the module that a graph was exported from, whose class its nodes name."""
    for node in graph.graph.nodes:
        for path, cls in (node.meta.get("nn_module_stack") or {}).values():
            if path:  # a module inside of it
                break
            name = cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"
            module, _, rest = name.rpartition(".")
            forward = getattr(getattr(sys.modules.get(module), rest, None), "forward", None)
            code = getattr(inspect.unwrap(forward), "__code__", None) if forward is not None else None
            return code if isinstance(code, types.CodeType) else None
    return None


def quantized_graph(modules: list[Any]) -> Any:
    """The first graph module with quantize or dequantize operations; None if there is none."""
    graph_module: Any = sys.modules["torch"].fx.GraphModule
    graphs = (one for each in modules for one in each.modules() if isinstance(one, graph_module))
    return next((one for one in graphs if any(pt2e.is_q_dq(node) for node in one.graph.nodes)), None)


def is_quantized(modules: list[Any]) -> bool:
    """Whether a program has a converted graph, or tensors of torchao's classes."""
    if quantized_graph(modules) is not None:
        return True
    tensors = (tensor for one in modules for tensor in (*one.parameters(), *one.buffers()))
    return any(pt2e.is_quantized_tensor(one) for one in tensors)
