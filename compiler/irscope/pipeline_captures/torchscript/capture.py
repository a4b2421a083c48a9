"""Captures what TorchScript makes of the script's programs."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.capture.programs import Program, ProgramCapture, place_of
from irscope.capture.run_book import RunBook
from irscope.events.stack import innermost_user, live_places
from irscope.internals.hooks import Hook
from irscope.internals.torchscript import called_hook, inline, made_hook
from irscope.pipeline_captures.torchscript.calls import leaves
from irscope.pipeline_captures.torchscript.frames import learn_frames, nodes_of
from irscope.pipeline_captures.torchscript.making import Call, Traced, leaving_no_trace, script, trace
from irscope.pipeline_captures.torchscript.own import OwnPrograms
from irscope.pipeline_captures.torchscript.showing import Shown
from irscope.pipelines.torchscript import stages
from irscope.protocol import CaptureGap, Compile, Finding, Range, Severity
from irscope.usercode.source import range_of_focus
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FindingKind

_HINT = "Use torch.where or torch.cond for what depends on values, or move it out of the program."


class TorchScriptCapture(ProgramCapture):
    """Traces a program; where the trace would be wrong for other inputs, scripts it.

    A program that can be neither traced faithfully nor scripted runs as Python, and its trace is shown.
    """

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._found: dict[tuple[str, str, Range], Finding] = {}
        self._own = OwnPrograms(book, self.begin, place_of)

    def hooks(self) -> list[Hook]:
        """The hooks that see what the script makes with ``torch.jit`` and calls, besides the one of
        ``torch.compile``."""
        return [*super().hooks(), made_hook(self._made), called_hook(self._called)]

    def _made(self, name: str, given: tuple[Any, ...], made: Any, caller: types.FrameType) -> None:
        if not self._is_lowering:
            self.book.caught(lambda: self._own.made(name, given, made, caller))

    def _called(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._is_lowering:
            self._own.called(program, args, kwargs)

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
            works = _Program(self, program, call, compile).show(
                traced.module, lambda copy: traced.module(*copy.tensors)
            )
            if not works:
                return program
            sys.stdout.write(output.getvalue())  # a traced program does not print again
            return self._runs(program, traced, call, compile)
        try:
            scripted = script(program)
        except Exception as error:  # noqa: BLE001  any error means that it cannot be scripted
            self._find_unsupported(str(error), compile)
            _Program(self, program, call, compile).show(traced.module, lambda copy: traced.module(*copy.tensors))
            return program

        def run(copy: Call) -> Any:
            args, kwargs = copy.arguments(copy.tensors)
            return scripted(*args, **kwargs)

        if not _Program(self, program, call, compile).show(scripted, run):
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


class _Program:
    """A program of `torch.compile`'s that has been traced or scripted."""

    def __init__(self, capture: TorchScriptCapture, program: Any, call: Call, compile: Compile) -> None:
        self._shown = Shown(capture.book, compile.id)
        self._program, self._call, self._function = program, call, compile.function

    def show(self, made: Any, run: Callable[[Call], object]) -> bool:
        """Writes all stages of a traced or scripted program, and returns whether it works; ``run`` runs it."""
        shown = self._shown
        shown.show_text(stages.GRAPH, str(made.graph))
        module = made if isinstance(made, sys.modules["torch"].jit.ScriptModule) else None
        calls = leaves(made.graph, module, self._function)
        inline(made.graph)  # in itself, before the first run: the executor then keeps the names that are given here
        _name_values(made.graph)
        learn_frames(made.graph, shown.memory)
        inlined = shown.show_inlined(made.graph, calls)
        shown.show_frozen(made)
        inputs = tuple(value.debugName() for value in made.graph.inputs())
        return shown.show_passes(self._program, self._call, inputs, inlined, run)


def _name_values(graph: Any) -> None:
    """Gives values that are only numbered the names of their operations, which passes keep."""
    for node in nodes_of(graph):
        for value in node.outputs():
            if value.debugName().isdecimal():
                value.setDebugName(node.kind().rpartition("::")[2])
