"""The texts and stages of a graph of lazy tensors that was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.operation_graphs import Operation, files_of, written_graph
from irscope.capture.run_book import RunBook
from irscope.pipeline_captures.openxla.dump import Dump
from irscope.pipeline_captures.openxla.lowering import node_of
from irscope.pipeline_captures.openxla.printing import Origin
from irscope.pipeline_captures.openxla.shown import Above, Shown
from irscope.pipeline_captures.xla import texts
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipelines.xla import stages
from irscope.protocol import CaptureGap, Compile
from irscope.usercode.source import digest_of


@dataclass(frozen=True)
class Texts:
    """Lazy IR, the operations of its lines, and its key: that of its StableHLO."""

    lazy: str
    lines: texts.Lines
    key: str


class Graphs:
    """Writes the graphs of one program, or of what a script runs itself."""

    def __init__(self, book: RunBook, nodes: NodeWriter, xla: TorchXla) -> None:
        self._book, self._nodes, self._xla = book, nodes, xla
        self._texts: Texts | None = None  # of the graph that is about to be run
        self._known: dict[str, str] = {}

    def take(self, tensors: Sequence[Any]) -> None:
        """Keeps the texts of a graph that is about to be run: afterwards its tensors have values, and no graph."""
        tensors = self._xla.unfinished(tensors)  # to ask for the text of another one would change it
        lazy, lines = texts.lazy_lines(self._xla.lazy_ir(tensors), operation_of)
        key = digest_of(lazy)
        if key not in self._known:  # StableHLO takes long
            self._known[key] = self._stablehlo(tensors)
        self._texts = Texts(lazy, lines, key)

    def forget(self) -> None:
        """The graph was run, and is known."""
        self._texts = None
        self._xla.forget()

    def _stablehlo(self, tensors: Sequence[Any]) -> str:
        try:
            return self._xla.stablehlo(tensors)
        except Exception as error:  # noqa: BLE001  XLA compiles the graph all the same
            self._book.gap(CaptureGap("StableHLO", f"{type(error).__name__}: {error}"))
            return ""

    def put(self, operations: Sequence[Operation], compile: Compile, backward: bool) -> None:
        """Puts the stages of a graph that XLA has just compiled, the operations first."""
        book, nodes = self._book, self._nodes
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


def operation_of(scope: str) -> str:
    """The operation of the innermost scope: ``max_pool2d~m.py:7/relu~m.py:7/aten__relu`` → ``relu``; empty if there is none."""
    return next((node for part in reversed(scope.split("/")) if (node := node_of(part))), "")
