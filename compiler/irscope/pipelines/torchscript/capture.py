"""Captures what TorchScript makes of the script's programs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from irscope.capture.programs import Program, ProgramCapture
from irscope.capture.run_book import RunBook
from irscope.capture.stack import innermost_user, live_places
from irscope.capture.versions import put_version
from irscope.internals.torchscript import executor_log, inline
from irscope.ir.torchscript import parse_script
from irscope.pipelines.torchscript import stages
from irscope.pipelines.torchscript.executor import OPTIMIZED, PROFILED, Logged, graphs_in
from irscope.pipelines.torchscript.frames import learn_frames, nodes_of
from irscope.pipelines.torchscript.making import Call, Traced, leaving_no_trace, script, trace
from irscope.pipelines.torchscript.printing import Memory, PrintedGraph, printed
from irscope.protocol import CaptureGap, Compile, Finding, Range, Severity
from irscope.usercode.source import line_text, range_of_focus
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FindingKind
from irscope.vocabulary.stages import StageKind

_RUNS = 3
"""The first run profiles and the second one optimizes; a script may have asked for one more profile."""
_HINT = "Use torch.where or torch.cond for what depends on values, or move it out of the program."


class TorchScriptCapture(ProgramCapture):
    """Traces a program; where the trace would be wrong for other inputs, scripts it.

    A program that can be neither traced faithfully nor scripted runs as Python, and its trace is shown.
    """

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._found: dict[tuple[str, str, Range], Finding] = {}

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Puts the stages of a program; see `ProgramCapture.lower`."""
        call = Call.of(args, kwargs)
        baked: list[str] = []

        def on_warning(message: str, is_of_shapes: bool) -> None:
            if not is_of_shapes:  # a trace is used for inputs of the same shapes alone
                baked.append(message)
            self._find_baked(message, is_of_shapes, compile)

        with leaving_no_trace(program, call) as (copy, output):
            traced = trace(program, copy, on_warning)
        if not baked:
            works = _Shown(self, program, call, compile).show(traced.module, lambda copy: traced.module(*copy.tensors))
            if not works:
                return program
            sys.stdout.write(output.getvalue())  # a traced program does not print again
            return self._runs(program, traced, call, compile)
        try:
            scripted = script(program)
        except Exception as error:  # noqa: BLE001  any error means that it cannot be scripted
            self._find_unsupported(str(error), compile)
            _Shown(self, program, call, compile).show(traced.module, lambda copy: traced.module(*copy.tensors))
            return program

        def run(copy: Call) -> None:
            args, kwargs = copy.arguments(copy.tensors)
            scripted(*args, **kwargs)

        if not _Shown(self, program, call, compile).show(scripted, run):
            return program
        return self._scripted(program, scripted, call, compile)

    def _runs(self, program: Program, traced: Traced, call: Call, compile: Compile) -> Program:
        signature = call.signature(program)

        def run(*args: Any, **kwargs: Any) -> Any:
            now = Call.of(args, kwargs)
            if now.signature(program) != signature:
                self._say_other_inputs(compile)
                return program(*args, **kwargs)
            return traced.rebuild(traced.module(*now.tensors))

        return run

    def _scripted(self, program: Program, scripted: Any, call: Call, compile: Compile) -> Program:
        training = call.signature(program)[-1]

        def run(*args: Any, **kwargs: Any) -> Any:
            if Call.of(args, kwargs).signature(program)[-1] != training:  # it was fixed when the source was compiled
                self._say_other_inputs(compile)
                return program(*args, **kwargs)
            return scripted(*args, **kwargs)

        return run

    def _say_other_inputs(self, compile: Compile) -> None:
        why = (
            "A trace is right for the shapes, numbers and modes of its first call alone, so other calls run as Python."
        )
        self.book.guarded(self.book.gap)(
            CaptureGap(f"calls of {compile.function} with other inputs ({compile.id})", why)
        )

    # --- findings -----------------------------------------------------------------------------------------------------

    def _find_baked(self, message: str, is_of_shapes: bool, compile: Compile) -> None:
        places = live_places()
        at = innermost_user(places)
        if at is None:
            return
        reason = re.sub(r"\s+", " ", message).strip()
        file, where = places[at].file, places[at].range
        if is_of_shapes:
            words = "The trace keeps the size that this depends on: it is right for inputs of the same shapes only."
            self._publish(stages.BAKED, "baked-size", words, reason, (), file, where, compile)
        else:
            words = "The trace keeps the value that this had in the first call: other inputs may take another way."
            self._publish(stages.BAKED, "baked-value", words, reason, (_HINT,), file, where, compile)

    def _find_unsupported(self, message: str, compile: Compile) -> None:
        reason = next((line.strip(" :") for line in message.splitlines() if line.strip()), "unknown reason")
        words = f"TorchScript cannot compile the source of {compile.function}: {reason}."
        why = "Its trace would be wrong for other inputs, so it runs as Python."
        for file, line in re.findall(r'File "([^"]+)", line (\d+)', message):
            if is_user_file(file):
                place = range_of_focus(file, int(line))
                self._publish(stages.UNSUPPORTED, "unsupported-by-script", words, why, (), file, place, compile)
                return
        self.book.gap(CaptureGap(f"the script of {compile.function} ({compile.id})", f"{reason}. {why}"))

    def _publish(
        self, kind: FindingKind, code: str, words: str, why: str, hints: tuple[str, ...], file: str, where: Range,
        compile: Compile,
    ) -> None:  # fmt: skip
        key = (code, file, where)
        before = self._found.get(key)
        count = before.count + 1 if before else 1
        compiles = tuple(dict.fromkeys([*(before.compiles if before else ()), compile.id]))
        severity = Severity.INFORMATION if code == "baked-size" else kind.severity
        self._found[key] = Finding(kind.id, code, severity, words, why, hints, None, file, where, count, compiles)
        self.book.publish(self._found[key])


class _Shown:
    """Writes the stages of one program."""

    def __init__(self, capture: TorchScriptCapture, program: Any, call: Call, compile: Compile) -> None:
        self._book, self._program, self._call, self._compile = capture.book, program, call, compile
        self._memory = Memory(is_user_file, lambda file, line: line_text(file, line).strip())

    def show(self, made: Any, run: Callable[[Call], object]) -> bool:
        """Writes all stages of a traced or scripted program, and returns whether it works; ``run`` runs it."""
        self._book.put_stage(self._compile.id, stages.GRAPH.name, str(made.graph))
        inline(made.graph)  # in itself, before the first run: the executor then keeps the names that are given here
        _name_values(made.graph)
        learn_frames(made.graph, self._memory)
        inlined = self._put(stages.INLINED, str(made.graph))
        self._show_frozen(made)
        log: list[str] = []
        try:
            with leaving_no_trace(self._program, self._call) as (copy, _), executor_log(log.append):
                for _ in range(_RUNS):
                    run(copy)
        except Exception as error:  # noqa: BLE001  the graph itself is there
            self._book.gap(CaptureGap(f"the passes of {self._compile.id}", f"{type(error).__name__}: {error}"))
            return False
        optimized = sys.modules["torch"].jit.last_executed_optimized_graph()
        learn_frames(optimized, self._memory)
        names = tuple(value.debugName() for value in made.graph.inputs())
        self._show_passes(list(graphs_in("".join(log), names)), inlined)
        return True

    def _show_frozen(self, made: Any) -> None:
        torch: Any = sys.modules["torch"]
        if not isinstance(made, torch.jit.ScriptModule) or made.training:
            return
        try:
            frozen = torch.jit.freeze(made)
        except Exception as error:  # noqa: BLE001  a module that cannot be frozen runs as it is
            self._book.gap(CaptureGap(f"the frozen graph of {self._compile.id}", f"{type(error).__name__}: {error}"))
            return
        learn_frames(frozen.graph, self._memory)
        self._put(stages.FROZEN, str(frozen.graph))

    def _show_passes(self, logged: list[Logged], before: PrintedGraph) -> None:
        kind, number = stages.PROFILED, 0
        for one in logged:
            if one.title == PROFILED:
                before, kind, number = self._put(stages.PROFILED, one.text), stages.OPTIMIZED, 0
            elif one.title == OPTIMIZED:
                before = self._put(stages.OPTIMIZED, one.text)
                self._book.put_stage(self._compile.id, stages.IR.name, one.text)
            else:
                after = printed(parse_script(one.text), self._memory, before)
                if not after.is_like(before):
                    number += 1
                    put_version(self._book, self._compile.id, kind, one.title, number, before, after)
                before = after
        if not any(one.title == OPTIMIZED for one in logged):
            why = "the executor did not log one; a script can turn its profiling off"
            self._book.gap(CaptureGap(f"the optimized graph of {self._compile.id}", why))

    def _put(self, kind: StageKind, text: str) -> PrintedGraph:
        graph = printed(parse_script(text), self._memory)
        self._book.put_stage(self._compile.id, kind.name, graph.text, data=graph.data)
        return graph


def _name_values(graph: Any) -> None:
    """Gives values that are only numbered the names of their operations, which passes keep."""
    for node in nodes_of(graph):
        for value in node.outputs():
            if value.debugName().isdecimal():
                value.setDebugName(node.kind().rpartition("::")[2])
