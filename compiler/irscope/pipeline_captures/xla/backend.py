"""What ``torch.compile(backend="openxla")`` compiles of tensors that are on the device."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.operation_graphs import Frames, Operation
from irscope.capture.programs import Program, place_of
from irscope.capture.run_book import RunBook
from irscope.events.stack import FramePlace, live_places
from irscope.internals.frames import callers
from irscope.internals.lazy_tensors import inner
from irscope.internals.modes import autograd_node
from irscope.pipeline_captures.xla import findings
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipeline_captures.xla.graphs import Graphs
from irscope.pipeline_captures.xla.program import compiled
from irscope.pipeline_captures.xla.tracing import Tracer
from irscope.protocol import Compile, CompileOutcome
from irscope.usercode.user_files import is_user_file

Original = Callable[..., Any]


@dataclasses.dataclass
class Part:
    """A graph that Dynamo made of a program, with what XLA compiled last for it."""

    compile: Compile
    graph: list[Operation]
    count: int = 1


class OpenXla:
    """The backend of PyTorch/XLA: it runs a graph of Dynamo's with lazy tensors once, and lets XLA compile that.

    Args:
        outside: A context in which operations are not the script's.
    """

    def __init__(
        self, book: RunBook, nodes: NodeWriter, new_frame: Callable[[], int],
        outside: Callable[[], AbstractContextManager[None]],
    ) -> None:  # fmt: skip
        self._book, self._nodes, self._new_frame, self._outside = book, nodes, new_frame, outside
        self._xla: TorchXla | None = None
        self._program: Program | None = None
        self._places: list[FramePlace] = []
        self._parts: dict[tuple[object, ...], Part] = {}

    def begin(self, xla: TorchXla, graphs: Graphs) -> None:
        """The device is there."""
        self._xla, self._graphs = xla, graphs

    def call(self, program: Program, compiled: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls what ``torch.compile`` made of a program."""
        self._program, self._places = program, live_places()
        with self._outside():
            return compiled(*args, **kwargs)

    def around(self) -> Mapping[str, Callable[..., Any]]:
        """What is called in place of functions of the bridge between Dynamo and lazy tensors."""
        return {"extract_compiled_graph": self._aside, "extract_graph_helper": self._extract}

    def _aside(self, original: Original, *given: Any) -> Any:
        with self._outside():  # it may be in a backward, which the script has called
            return original(*given)

    def _extract(self, original: Original, module: Any, *others: Any) -> Any:
        """A graph of Dynamo's is run with lazy tensors and compiled."""
        if self._xla is None or not self._book.is_open:
            return original(module, *others)
        tracer = GraphTracer(self._xla, self._nodes, module)
        undo = self._xla.around("_xla_warm_up_cache", functools.partial(self._warm_up, tracer))
        try:
            with self._outside(), tracer.mode():
                return original(module, *others)
        finally:
            undo()

    def _warm_up(self, tracer: Tracer, original: Original, tensors: Any, *others: Any) -> Any:
        graphs: list[list[Operation]] = []

        def before() -> None:
            self._graphs.forget()
            self._graphs.take(tensors)
            graphs.append(tracer.graph(tracer.pending([inner(one) for one in tensors])))

        self._book.guarded(before)()
        start = time.perf_counter()
        result = original(tensors, *others)
        if graphs:
            self._book.guarded(self._compiled)(graphs[0], time.perf_counter() - start)
        return result

    def _compiled(self, operations: list[Operation], seconds: float) -> None:
        backward = autograd_node() is not None
        if self._xla is not None and self._xla.has_compiled() and self._program is not None:
            found = self._forward_of(operations) if backward else None
            compile = found.compile if found else self._compile_of(self._program, operations, seconds)
            self._graphs.put(operations, compile, backward)
        self._graphs.forget()

    def _compile_of(self, program: Program, operations: list[Operation], seconds: float) -> Compile:
        function, file, line = place_of(program)
        key = (id(program), *_lines(operations)[:1])
        part = self._parts.get(key)
        if part is None:
            name = f"{self._new_frame()}/0"
            part = self._parts[key] = Part(
                Compile(name, function, file, line, CompileOutcome.RUNNING, 0, 0, 0.0), operations
            )
        else:
            frame = part.compile.id.partition("/")[0]
            part.compile = dataclasses.replace(part.compile, id=f"{frame}/{part.count}")
            findings.add_recompilation(self._book, part.graph, operations, part.compile, self._places)
            part.graph, part.count = operations, part.count + 1
        self._book.put_compile(compiled(part.compile, operations, seconds))
        return part.compile

    def _forward_of(self, operations: list[Operation]) -> Part | None:
        """The graph with most of the lines that a backward has."""
        lines = set(_lines(operations))
        return max(self._parts.values(), key=lambda one: len(lines & set(_lines(one.graph))), default=None)


class GraphTracer(Tracer):
    """The operations of a graph module, with the lines that Dynamo knows of its nodes."""

    def __init__(self, xla: TorchXla, nodes: NodeWriter, module: Any) -> None:
        super().__init__(xla, [], lambda tensors: None, lambda cut, operations: None)
        self._nodes, self._known = nodes, {node.name: node for node in module.graph.nodes}
        names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
        for name, value in zip(names, module.xla_args, strict=False):
            self.call(value, name)

    def _place(self) -> tuple[Frames, tuple[str, str] | None]:
        for frame in callers():
            file = frame.f_code.co_filename
            if file.startswith("<eval_with_key>"):  # how PyTorch names the Python of a graph
                row = linecache.getline(file, frame.f_lineno or 1, frame.f_globals)
                node = self._known.get(row.partition("=")[0].partition(":")[0].strip())
                return self._told_of(node) if node is not None else ((), None)
        return (), None

    def _told_of(self, node: Any) -> tuple[Frames, tuple[str, str] | None]:
        stack = node.meta.get("nn_module_stack")
        path, cls = next(reversed(stack.values())) if stack else ("", "")
        frames = self._nodes.frames(node.meta.get("stack_trace") or "")
        return frames, (path, self._nodes.class_name(cls)) if path else None


def _lines(operations: list[Operation]) -> list[tuple[str, int]]:
    """The user's lines of a graph, in its order."""
    return [
        (file, line)
        for one in operations
        for file, line, _ in [frame for frame in one.frames if is_user_file(frame[0])][-1:]
    ]
