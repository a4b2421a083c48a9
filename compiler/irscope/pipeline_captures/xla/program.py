"""A program of the script that is run with lazy tensors again and again: each graph that XLA compiled of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from irscope.capture.operation_graphs import Operation
from irscope.capture.programs import Program
from irscope.capture.run_book import RunBook
from irscope.events.stack import live_places
from irscope.pipeline_captures.xla import findings
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipeline_captures.xla.graphs import Graphs
from irscope.pipeline_captures.xla.modules import Modules
from irscope.pipeline_captures.xla.running import LazyCall, PlainCall
from irscope.pipeline_captures.xla.tracing import Cut, Tracer
from irscope.protocol import CaptureGap, Compile, CompileOutcome


@dataclasses.dataclass
class Segment:
    """What lies between two cuts of a program: one graph, compiled again when it has changed."""

    first: Compile
    graphs: list[list[Operation]] = dataclasses.field(default_factory=list)
    latest: Compile | None = None


class LazyProgram:
    """A program that is run with lazy tensors again and again.

    Args:
        new_frame: Gives the number of a compile that is not the first of a program.
    """

    def __init__(
        self, book: RunBook, xla: TorchXla, graphs: Graphs, program: Program, compile: Compile,
        new_frame: Callable[[], int],
    ) -> None:  # fmt: skip
        self._book, self._xla, self._graphs, self._program, self._new_frame = book, xla, graphs, program, new_frame
        self._plain = PlainCall(xla, program)
        self._segments = [Segment(compile)]
        self._at = 0
        self._now: Compile | None = None  # of the graph that was run last

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program gives.  Raises UnfitError."""
        if not self._book.is_open:  # the run has ended, and its programs are timed
            self._xla.stop_tracing()
            return self._plain.call(args, kwargs)
        modules = Modules(self._program)
        self._at, self._caller = 0, live_places()
        self._xla.forget()
        tracer = Tracer(self._xla, modules.stack, self._book.guarded(self._graphs.take), self._book.guarded(self._cut))
        self._compiled = self._xla.compiled()
        self._start = time.perf_counter()

        def finished(backward: bool) -> None:
            self._finish(tracer, backward)

        def failed(error: Exception) -> None:
            reason = str(error).strip().partition("\n")[0]
            self.runs_as_python(f"its backward failed: {type(error).__name__}: {reason}")

        return LazyCall(self._xla, tracer, self._program, modules, finished, failed).call(args, kwargs)

    def runs_as_python(self, why: str) -> None:
        """The program runs as plain Python."""
        function = self._segments[0].first.function
        self._book.gap(CaptureGap(f"{function} with lazy tensors", f"{why}; it runs as plain Python"))

    def _cut(self, cut: Cut, operations: list[Operation]) -> None:
        """A graph was run because its value was needed."""
        compile = self._ran(operations, False) if operations else self._segments[self._at].first
        places = findings.with_libraries(live_places(), cut.frames)
        findings.add_cut(self._book, cut, compile, places)
        if operations:
            self._at += 1

    def _finish(self, tracer: Tracer, backward: bool) -> None:
        """The end of a call, or of a backward: all that is in use is computed as one graph."""
        roots = tracer.pending()
        operations = tracer.graph(roots) if roots else []
        if operations and (tensors := tracer.live()):
            self._book.guarded(self._graphs.take)(tensors)
        self._xla.sync()
        tracer.computed(roots)

        def ran() -> None:
            self._ran(operations, backward)

        if operations:
            self._book.guarded(ran)()

    def _ran(self, operations: list[Operation], backward: bool) -> Compile:
        """A graph was run; if it was compiled for that, it is a compile of the run."""
        count = self._xla.compiled()
        is_new, self._compiled = count > self._compiled, count
        seconds, self._start = time.perf_counter() - self._start, time.perf_counter()
        if backward and self._now is not None:
            compile = self._now
        else:
            compile = self._now = self._compile_of(operations, is_new, seconds)
        if is_new:
            self._graphs.put(operations, compile, backward)
        self._graphs.forget()
        return compile

    def _compile_of(self, operations: list[Operation], is_new: bool, seconds: float) -> Compile:
        if self._at == len(self._segments):
            name = f"{self._new_frame()}/0"
            self._segments.append(Segment(dataclasses.replace(self._segments[0].first, id=name)))
        segment = self._segments[self._at]
        compile = segment.latest or segment.first
        if not is_new:
            return compile
        if segment.graphs:
            frame = segment.first.id.partition("/")[0]
            compile = dataclasses.replace(segment.first, id=f"{frame}/{len(segment.graphs)}")
            findings.add_recompilation(self._book, segment.graphs[-1], operations, compile, self._caller)
        if compile is not self._segments[0].first:
            self._book.put_compile(compiled(compile, operations, seconds))
        segment.graphs.append(operations)
        segment.latest = compile
        return compile


def compiled(compile: Compile, operations: list[Operation], seconds: float) -> Compile:
    """A compile that has ended, with the operations of its graph."""
    calls = sum(one.op == "call_function" for one in operations)
    return dataclasses.replace(compile, outcome=CompileOutcome.COMPILED, graph_ops=calls, seconds=round(seconds, 6))
