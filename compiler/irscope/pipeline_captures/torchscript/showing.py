"""Writes the stages of one TorchScript program: its graphs, and what the executor's passes make of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.capture.versions import put_version
from irscope.internals.torchscript import executor_log
from irscope.ir.torchscript import parse_script
from irscope.pipeline_captures.torchscript.calls import Leaf, aligned
from irscope.pipeline_captures.torchscript.executor import (
    BACKWARD,
    FORWARD,
    GUARDED,
    OPTIMIZED,
    PROFILED,
    Logged,
    graphs_in,
)
from irscope.pipeline_captures.torchscript.frames import learn_frames, nodes_of
from irscope.pipeline_captures.torchscript.gradients import Derived, learn_gradient
from irscope.pipeline_captures.torchscript.loops import GROUP, fuser_facts, loops_of
from irscope.pipeline_captures.torchscript.making import Call, differentiate, leaving_no_trace, needs_gradients
from irscope.pipeline_captures.torchscript.naming import PROFILES
from irscope.pipeline_captures.torchscript.printing import Memory, PrintedGraph, printed
from irscope.pipelines.torchscript import stages
from irscope.protocol import CaptureGap
from irscope.usercode.source import line_text
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.stages import StageKind

_RUNS = 3
"""The first run profiles and the second one optimizes; a backward is profiled in the second and optimized in the third."""


class Shown:
    """The stages of one program.

    Args:
        memory: The one of the program that this one was made from.
    """

    def __init__(self, book: RunBook, compile: str, memory: Memory | None = None) -> None:
        self._book, self._compile = book, compile
        self.memory = memory or Memory(is_user_file, lambda file, line: line_text(file, line).strip())

    def gap(self, what: str, why: object) -> None:
        """Something of this program could not be captured."""
        words = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else str(why)
        self._book.gap(CaptureGap(f"{what} of {self._compile}", words))

    def put(
        self, kind: StageKind, text: str, before: PrintedGraph | None = None, backward: bool = False
    ) -> PrintedGraph:
        """Writes a graph as a stage."""
        graph = printed(parse_script(text), self.memory, before)
        self._book.put_stage(self._compile, kind.name, graph.text, data=graph.data, backward=backward)
        return graph

    def show_inlined(self, graph: Any, calls: Sequence[Leaf], before: PrintedGraph | None = None) -> PrintedGraph:
        """Writes the inlined graph.

        Args:
            calls: The operations before inlining, with the lines of all calls to them (`torchscript.calls`).
            before: The graph that this one was made from, if it is a frozen one.
        """
        parsed = parse_script(str(graph))
        first = printed(parsed, self.memory, before)
        nodes = [node for node in nodes_of(graph) if node.kind() not in PROFILES]
        for named, frames in zip(first.operations, aligned(nodes, calls) if before is None else (), strict=False):
            if frames:
                self.memory.stacks.update(dict.fromkeys(named.names, frames))
        return self.put(stages.INLINED, str(graph), before)

    def show_text(self, kind: StageKind, text: str) -> None:
        """Writes a text as a stage."""
        self._book.put_stage(self._compile, kind.name, text)

    def show_frozen(self, made: Any) -> None:
        """Freezes a copy of a module in evaluation mode and writes its graph."""
        torch: Any = sys.modules["torch"]
        if not isinstance(made, torch.jit.ScriptModule) or not hasattr(made, "training") or made.training:
            return
        try:
            frozen = torch.jit.freeze(made)
        except Exception as error:  # noqa: BLE001  a module that cannot be frozen runs as it is
            self.gap("the frozen graph", error)
            return
        learn_frames(frozen.graph, self.memory)
        self.put(stages.FROZEN, str(frozen.graph))

    def show_passes(
        self, program: Any, call: Call, inputs: tuple[str, ...], before: PrintedGraph, run: Callable[[Call], Any]
    ) -> bool:
        """Runs a program on copies of its inputs, writes what the executor's passes make of it, and returns whether it
        works.

        Args:
            inputs: What TorchScript calls the inputs of the program's graph.
            before: The graph before all passes.
            run: Calls the program.
        """
        log, backward = list[str](), list[str]()
        try:
            with leaving_no_trace(program, call) as (copy, _):
                for number in range(_RUNS):
                    with executor_log(log.append):
                        result = run(copy)
                    if number > 0 and not needs_gradients(result):
                        break
                    with executor_log(backward.append):
                        differentiate(result, program, copy)
        except Exception as error:  # noqa: BLE001  the graph itself is there
            self.gap("the passes", error)
            return False
        learn_frames(sys.modules["torch"].jit.last_executed_optimized_graph(), self.memory)
        logged = list(graphs_in("".join(log)))
        derived = self._show_forward(logged, inputs, before)
        self._show_backward(list(graphs_in("".join(backward))), derived)
        return True

    def _show_forward(self, logged: Sequence[Logged], inputs: tuple[str, ...], before: PrintedGraph) -> list[Derived]:
        kind, number, executor = stages.PROFILED, 0, next((one.executor for one in logged if one.takes(inputs)), "")
        derived: list[Derived] = []
        guarded: tuple[Logged, PrintedGraph] | None = None
        forward: Logged | None = None
        last = ""
        for one in logged:
            if one.title == FORWARD:
                forward = one
            elif one.title == BACKWARD:
                if forward is not None and guarded is not None:
                    derived.append(Derived(one, forward, *guarded))
            elif one.executor != executor or not one.takes(inputs):
                continue
            elif one.title == PROFILED:
                before, kind, number = self.put(stages.PROFILED, one.text, before), stages.OPTIMIZED, 0
            elif one.title == OPTIMIZED:
                before = self.put(stages.OPTIMIZED, one.text, before)
                self.show_text(stages.IR, one.text)
                self.show_text(stages.FUSER, fuser_facts(one.text.count(f"with {GROUP}")))
                self._show_loops(one, before)
            else:
                after = _read(one.text, last, before, self.memory)
                if not after.is_like(before):
                    number += 1
                    put_version(self._book, self._compile, kind, one.title, number, before, after)
                before = after
                guarded = (one, after) if one.title == GUARDED else guarded
            last = one.text
        if not _has_optimized(logged, inputs):
            self.gap("the optimized graph", "the executor did not log one; a script can turn its profiling off")
        return derived

    def _show_loops(self, logged: Logged, graph: PrintedGraph, backward: bool = False) -> None:
        try:
            for loops in loops_of(logged.text, graph):
                data = {"lines": [list(one) for one in loops.lines]}
                self._book.put_stage(self._compile, stages.LOOPS.name, loops.text, data=data, backward=backward)
        except RuntimeError as error:
            self.gap("the loops of fused groups", error)

    def _show_backward(self, logged: Sequence[Logged], derived: Sequence[Derived]) -> None:
        """The backward of each part that was differentiated, with the lines of the forward that it belongs to."""
        seen: set[str] = set()
        for index, part in enumerate(derived):
            memory = self.memory.for_backward()
            gradient = learn_gradient(part, memory)
            self._put_backward(stages.GRADIENT, gradient)
            suffix = "-backward" if index == 0 else f"-backward-{index + 1}"
            before, kind, number, ended, last = gradient, stages.PROFILED, 0, False, ""
            mine = [one for one in logged if one.takes(part.backward.inputs) and one.executor not in seen]
            seen.update(one.executor for one in mine[:1])
            for one in mine:
                if ended or one.executor != mine[0].executor or one.title in (FORWARD, BACKWARD):
                    continue
                after = _read(one.text, last, before, memory)
                last = one.text
                if one.title in (PROFILED, OPTIMIZED):
                    self._put_backward(stages.PROFILED if one.title == PROFILED else stages.OPTIMIZED, after)
                    if one.title == OPTIMIZED:
                        self._show_loops(one, after, backward=True)
                    kind, number, ended = stages.OPTIMIZED, 0, one.title == OPTIMIZED
                elif not after.is_like(before):
                    number += 1
                    put_version(
                        self._book, self._compile, kind, one.title, number, before, after, suffix=suffix, backward=True
                    )
                before = after
            if not ended:
                self.gap("the optimized backward", "the executor did not log one")

    def _put_backward(self, kind: StageKind, graph: PrintedGraph) -> None:
        self._book.put_stage(self._compile, kind.name, graph.text, data=graph.data, backward=True)


def _has_optimized(logged: Sequence[Logged], inputs: tuple[str, ...]) -> bool:
    return any(graph.title == OPTIMIZED and graph.takes(inputs) for graph in logged)


def _read(text: str, last: str, before: PrintedGraph, memory: Memory) -> PrintedGraph:
    """A graph after a pass.  Most passes change nothing: what is printed already is not read once more."""
    return before if text == last else printed(parse_script(text), memory, before)
