"""What is captured of PyTorch/XLA: the lazy operations of each program, and each graph that XLA compiled of them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.operation_graphs import Operation, files_of, written_graph
from irscope.capture.programs import Program, ProgramCapture
from irscope.capture.run_book import RunBook
from irscope.capture.stack import live_places
from irscope.internals.hooks import Hook
from irscope.internals.lazy_tensors import hook
from irscope.pipelines.openxla.dump import Dump
from irscope.pipelines.openxla.printing import Origin
from irscope.pipelines.openxla.shown import Above, Shown
from irscope.pipelines.xla import findings, stages, texts
from irscope.pipelines.xla.device import TorchXla
from irscope.pipelines.xla.running import LazyCall, PlainCall, UnfitError
from irscope.pipelines.xla.scopes import operation_of
from irscope.pipelines.xla.tracing import Cut, Tracer
from irscope.protocol import CaptureGap, Compile, CompileOutcome
from irscope.system.commands import new_folder
from irscope.usercode.source import digest_of


class XlaCapture(ProgramCapture):
    """Runs each program with lazy tensors; what they compute is what the script gets."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self.nodes = NodeWriter()
        self._folder: Any = None
        self._xla: TorchXla | None = None

    def hooks(self) -> list[Hook]:
        """What takes the script's programs, and what brings the device into PyTorch."""
        return [*super().hooks(), hook(self._begin)]

    def _begin(self) -> None:
        self._folder = new_folder()
        self._xla = TorchXla(Path(self._folder.name))

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Makes the first call with lazy tensors; see `ProgramCapture.lower`."""
        if self._xla is None:  # a capture gap says why
            return program
        lazy = LazyProgram(self, self._xla, program, compile)
        try:
            first = [lazy.call(args, kwargs)]
        except UnfitError as error:
            self.gap_of(compile, str(error))
            return program

        def called(*args: Any, **kwargs: Any) -> Any:
            if first:
                return first.pop()
            try:
                return lazy.call(args, kwargs)
            except UnfitError as error:
                self.gap_of(compile, str(error))
                return program(*args, **kwargs)

        return called

    def gap_of(self, compile: Compile, why: str) -> None:
        """The program runs as plain Python."""
        self.book.gap(CaptureGap(f"{compile.function} with lazy tensors", f"{why}; it runs as plain Python"))

    def new_frame(self) -> int:
        """The number of a compile that is not the first of a program."""
        self._count += 1
        return self._count - 1


@dataclasses.dataclass
class Segment:
    """What lies between two cuts of a program: one graph, compiled again when it has changed."""

    first: Compile
    graphs: list[list[Operation]] = dataclasses.field(default_factory=list)
    latest: Compile | None = None


@dataclasses.dataclass(frozen=True)
class Texts:
    """Lazy IR, the operations of its lines, and its key: that of its StableHLO."""

    lazy: str
    lines: texts.Lines
    key: str


class LazyProgram:
    """A program that is run with lazy tensors again and again."""

    def __init__(self, capture: XlaCapture, xla: TorchXla, program: Program, compile: Compile) -> None:
        self._capture, self._xla, self._program = capture, xla, program
        self._plain = PlainCall(xla, program)
        self._segments = [Segment(compile)]
        self._at = 0
        self._now: Compile | None = None  # of the graph that was run last
        self._texts: Texts | None = None  # of the graph that is about to be run
        self._known: dict[str, str] = {}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program gives.  Raises UnfitError."""
        if not self._capture.book.is_open:  # the run has ended, and its programs are timed
            self._xla.stop_tracing()
            return self._plain.call(args, kwargs)
        stack: list[tuple[str, str]] = []
        self._at, self._caller = 0, live_places()
        self._xla.forget()
        tracer = Tracer(self._xla, stack, self._guarded(self._take), self._guarded(self._cut))
        self._compiled = self._xla.compiled()
        self._start = time.perf_counter()

        def finished(backward: bool) -> None:
            self._finish(tracer, backward)

        def failed(error: Exception) -> None:
            reason = str(error).strip().partition("\n")[0]
            self._capture.gap_of(self._segments[0].first, f"its backward failed: {type(error).__name__}: {reason}")

        return LazyCall(self._xla, tracer, self._program, stack, finished, failed).call(args, kwargs)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., None]:
        return self._capture.book.guarded(function)

    # --- graphs -------------------------------------------------------------------------------------------------------

    def _cut(self, cut: Cut, operations: list[Operation]) -> None:
        """A graph was run because its value was needed."""
        compile = self._ran(operations, False) if operations else self._segments[self._at].first
        places = findings.with_libraries(live_places(), cut.frames)
        if cut.is_fallback:
            findings.add_fallback(self._capture.book, cut, compile, places)
        else:
            findings.add_cut(self._capture.book, cut, compile, places)
        if operations:
            self._at += 1

    def _finish(self, tracer: Tracer, backward: bool) -> None:
        """The end of a call, or of a backward: all that is in use is computed as one graph."""
        roots = tracer.pending()
        operations = tracer.graph(roots) if roots else []
        if operations and (tensors := tracer.live()):
            self._guarded(self._take)(tensors)
        self._xla.sync()
        tracer.computed(roots)
        if operations:
            self._guarded(self._ran)(operations, backward)

    def _take(self, tensors: list[Any]) -> None:
        """Keeps the texts of a graph that is about to be run: afterwards its tensors have values, and no graph."""
        lazy, lines = texts.lazy_lines(self._xla.lazy_ir(tensors), operation_of)
        key = digest_of(lazy)
        if key not in self._known:  # StableHLO takes long
            self._known[key] = self._stablehlo(tensors)
        self._texts = Texts(lazy, lines, key)

    def _stablehlo(self, tensors: list[Any]) -> str:
        try:
            return self._xla.stablehlo(tensors)
        except Exception as error:  # noqa: BLE001  XLA compiles the graph all the same
            self._capture.book.gap(CaptureGap("StableHLO", f"{type(error).__name__}: {error}"))
            return ""

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
            self._put(operations, compile, backward)
        self._texts = None
        self._xla.forget()
        return compile

    def _compile_of(self, operations: list[Operation], is_new: bool, seconds: float) -> Compile:
        capture = self._capture
        if self._at == len(self._segments):
            name = f"{capture.new_frame()}/0"
            self._segments.append(Segment(dataclasses.replace(self._segments[0].first, id=name)))
        segment = self._segments[self._at]
        compile = segment.latest or segment.first
        if not is_new:
            return compile
        if segment.graphs:
            frame = segment.first.id.partition("/")[0]
            compile = dataclasses.replace(segment.first, id=f"{frame}/{len(segment.graphs)}")
            findings.add_recompilation(capture.book, segment.graphs[-1], operations, compile, self._caller)
        if compile is not self._segments[0].first:
            calls = sum(one.op == "call_function" for one in operations)
            done = dataclasses.replace(
                compile, outcome=CompileOutcome.COMPILED, graph_ops=calls, seconds=round(seconds, 6)
            )
            capture.book.put_compile(done)
        segment.graphs.append(operations)
        segment.latest = compile
        return compile

    # --- stages -------------------------------------------------------------------------------------------------------

    def _put(self, operations: list[Operation], compile: Compile, backward: bool) -> None:
        book, nodes = self._capture.book, self._capture.nodes
        number = nodes.new_number()
        text, data = written_graph("LazyGraph", number, operations)
        book.put_stage(compile.id, stages.LAZY_GRAPH.name, text, data=data, backward=backward)
        for file in files_of(operations):
            book.keep_source(file)
        origins = {one.name: Origin(one.frames, one.module) for one in operations}
        inputs = [one.name for one in operations if one.op == "placeholder"]
        shown = Shown(book, compile, nodes, Above(number, origins, inputs, operation_of), backward)
        if found := self._texts:
            book.put_stage(compile.id, stages.LAZY_IR.name, found.lazy, data={"lines": found.lines}, backward=backward)
            if stablehlo := self._known[found.key]:
                shown.put_read_stablehlo(*texts.stablehlo_lines(stablehlo, found.lines, operation_of))
                self._known[found.key] = ""
        else:
            book.gap(CaptureGap("lazy IR", f"the graph of {compile.id} was run where nothing was known to need it"))
        shown.put_dump(Dump(self._xla.folder))
