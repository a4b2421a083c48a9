"""Writes the stages of one program below the exported one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.operation_graphs import Operation, files_of, written_graph
from irscope.capture.rewrites import inherited, sources_of
from irscope.capture.run_book import RunBook
from irscope.capture.versions import WrittenGraph, put_version
from irscope.pipeline_captures.export.places import user_lines
from irscope.pipeline_captures.tvm.building import Built, Passes, assembly_functions, llvm_functions
from irscope.pipeline_captures.tvm.scripts import Relax, RelaxReader
from irscope.pipeline_captures.tvm.tir_passes import TirVersion
from irscope.pipelines.registry import position
from irscope.pipelines.tvm import stages
from irscope.protocol import CaptureGap, Compile, Kernel, Origin, StageRef
from irscope.vocabulary.stages import KERNELS

_MOST = 2_000_000
"""Characters of a text; what is longer is cut."""
_MOST_TOLD = 8
"""Lines that are noted behind an operation."""


class Shown:
    """The stages of one compile.

    Args:
        module: The graph module of the program in core ATen.
        made_by: Variable of Relax → name of the node of that graph that it came from.
    """

    def __init__(
        self, book: RunBook, compile: Compile, nodes: NodeWriter, module: Any, made_by: dict[str, str]
    ) -> None:
        self._book, self._compile, self._nodes = book, compile, nodes
        self._reader = RelaxReader()
        self._traced = {one.name: one for one in _operations_of(module, nodes)}
        self._made_by = {self._reader.names.of(variable): node for variable, node in made_by.items()}
        self._above = nodes.number(id(module.graph))
        self._kept: list[Any] = [module]  # an address is not used again
        self._graph = Relax((), {}, ())
        self._first: tuple[Operation, ...] = ()
        self._first_number = -1
        self._traced_to: dict[str, tuple[str, ...]] = {}  # operation → those of the first graph that it came from
        self._last: tuple[str, dict[str, Any]] = "", {}

    def put_first(self, text: str) -> None:
        """Puts Relax as it was imported."""
        graph = self._reader.read(text)
        named = [dataclasses.replace(one, sources=self._sources(one)) for one in graph.operations]
        self._first = tuple(inherited(one, {one.name: one.sources}, self._traced) for one in named)
        self._write(dataclasses.replace(graph, operations=self._first), stages.RELAX.title)
        self._put_last(stages.RELAX.name)
        self._first_number = self._above
        self._traced_to = {one.name: (one.name,) for one in self._first}

    def put_passes(self, passes: Passes) -> None:
        """Puts Relax after each pass that changed it, and after all."""
        for number, (passed, text) in enumerate(passes.relax):
            self._put_version(passed, number, text)
        if passes.relax:
            self._last = self._linked_with_first()
            self._put_last(stages.LOWERED.name)
            self._book.put_stage(self._compile.id, stages.MODULE.name, self._bounded(passes.module.script()))

    def nodes_of(self, target: str) -> list[str]:
        """The nodes of the program that operations with this target came from, as far as passes have come."""
        made = [name for one in self._graph.operations if one.target == target for name in self._traced_to[one.name]]
        return [source for one in self._first if one.name in made for source in one.sources]

    def put_kernels(self, passes: Passes, built: Built) -> None:
        """Puts each function of TIR with what it is lowered to; passes leave some that nothing calls any more."""
        below = (
            (stages.LAST_TIR, passes.lowered),
            (stages.LLVM, llvm_functions(built.llvm, passes.functions)),
            (stages.ASSEMBLY, assembly_functions(built.assembly, passes.functions)),
            (stages.CUDA, built.lower.cuda),
        )
        for what, why in built.lower.missing.items():
            self._gap(what, why)
        kernels = []
        for name, text in passes.functions.items():
            if name not in self._graph.called:
                continue
            stage = f"{self._compile.id}/{KERNELS}/{name}"
            callers = self._graph.called.get(name, ())
            rows = text.rstrip("\n").count("\n") + 1
            lines = [(number, caller) for number in range(1, rows + 1) for caller in callers]
            self._book.write_stage(self._compile.id, stages.KERNEL.name, stage, self._bounded(text), {"lines": lines})
            start = next((number for number, row in enumerate(text.split("\n"), 1) if row.startswith("def ")), 1)
            for offset, (kind, texts) in zip((0, -1, 1, 2), below, strict=True):
                if name in texts:
                    id = f"{stage}/{kind.name}"
                    data = _all_from(texts[name], max(1, start + offset))
                    self._book.write_stage(self._compile.id, kind.name, id, self._bounded(texts[name]), data)
                elif kind is not stages.CUDA:  # why there is none is told for all functions together
                    self._gap(f"{kind.title} of {name}", "TVM did not give it")
            self._put_tir_versions(stage, [one for one in built.lower.versions if one.function == name])
            kernels.append(Kernel(name, stages.KERNEL.language, self._compile.id, stage, self._origins(callers)))
        self._book.put_kernels(kernels)

    def _put_tir_versions(self, stage: str, versions: list[TirVersion]) -> None:
        """Puts a function after each pass of TIR; those that come after the stage of all passes follow it.

        Each belongs to the lines of its function as a whole, and links of their own would be all pairs of lines.
        """
        kind = stages.LAST_TIR
        for number, one in enumerate(versions, 1):
            id = f"{stage}/{kind.name}/{number:02}-{one.passed}"
            ref = StageRef(id, kind.name, kind.language, len(one.text), one.passed)
            order = position(kind.name, False) + (0.0 if one.is_packed else -0.5) + number / 10_000
            self._book.write_version(self._compile.id, ref, self._bounded(one.text), order)

    # --- graphs -------------------------------------------------------------------------------------------------------

    def _put_version(self, passed: str, number: int, text: str) -> None:
        before, old = self._graph.operations, self._graph.shapes
        graph = self._reader.read(text)
        if graph.shapes == old:  # it changed functions of TIR only, or where blocks begin
            self._graph = dataclasses.replace(self._graph, called=graph.called)
            return
        known = {one.name: one for one in before}
        sources = sources_of(before, graph.operations)
        linked = tuple(inherited(one, sources, known) for one in graph.operations)
        graph = dataclasses.replace(graph, operations=linked)
        self._traced_to = {
            one.name: tuple(dict.fromkeys(name for source in one.sources for name in self._traced_to[source]))
            for one in linked
        }
        self._write(graph, passed)
        was, now = WrittenGraph("", {}, old), WrittenGraph(*self._last, graph.shapes)
        put_version(self._book, self._compile.id, stages.LOWERED, passed, number, was, now)

    def _linked_with_first(self) -> tuple[str, dict[str, Any]]:
        """The last graph with what it came from in the first one.

        A node that came from several lines is linked to all of them; a comment after it lists them.
        """
        frames = {one.name: one.frames for one in self._first}
        operations = []
        for one in self._graph.operations:
            sources = self._traced_to[one.name]
            lines = dict.fromkeys(line for name in sources for line in user_lines(frames[name])[:1])
            linked = dataclasses.replace(one, sources=sources)
            if len(lines) > 1 and one.op == "call_function":
                told = ", ".join(f"{os.path.basename(line.file)}:{line.line}" for line in list(lines)[:_MOST_TOLD])
                linked = dataclasses.replace(linked, frames=(), note=f"from {told}")
            operations.append(linked)
        return written_graph("Module", self._above, operations, self._first_number, stages.LOWERED.title)

    def _write(self, graph: Relax, made_by: str) -> None:
        for one in graph.left_out:
            self._gap(f"the statement {one} in Relax", "only operations outside of branches and loops are shown")
        self._kept.append(graph)
        number = self._nodes.number(id(graph))
        self._last = written_graph("Module", number, graph.operations, self._above, made_by)
        self._above, self._graph = number, graph

    def _put_last(self, kind: str) -> None:
        text, data = self._last
        self._book.put_stage(self._compile.id, kind, text, data=data)
        for file in files_of(self._graph.operations):
            self._book.keep_source(file)

    def _sources(self, one: Operation) -> tuple[str, ...]:
        node = self._made_by.get(one.name, one.name)
        return (node,) if node in self._traced else ()

    def _origins(self, callers: tuple[str, ...]) -> tuple[Origin, ...]:
        known = {one.name: one.frames for one in self._first}
        frames = [known[name] for caller in callers for name in self._traced_to.get(caller, ())]
        return tuple(sorted({line for one in frames for line in user_lines(one)}))

    def _bounded(self, text: str) -> str:
        if len(text) <= _MOST:
            return text
        self._gap("the end of a text of TVM", f"it has {len(text)} characters, and irscope keeps {_MOST}")
        return text[:_MOST].rpartition("\n")[0] + "\n"

    def _gap(self, what: str, why: str) -> None:
        self._book.gap(CaptureGap(f"{what} ({self._compile.id})", why))


def _all_from(text: str, row: int) -> dict[str, Any]:
    """The data of a text whose lines all came from one row of the kernel's.

    Texts that came from one line are linked in all pairs of their lines: thousands by thousands.  So each has another.
    """
    return {"lines": [(number, str(row)) for number in range(1, text.rstrip("\n").count("\n") + 2)]}


def _operations_of(module: Any, nodes: NodeWriter) -> Iterator[Operation]:
    for node in module.graph.nodes:
        frames = nodes.frames(node.meta.get("stack_trace") or "")
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        inside = (str(stack[-1][0]), nodes.class_name(stack[-1][1])) if stack else None
        op = "call_function" if node.op.startswith("call_") else node.op
        yield Operation(node.name, op, str(node.target), frames=frames, module=inside)
