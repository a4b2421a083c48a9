"""Keeps book of the compiles of a run, record by record."""

from __future__ import annotations

import dataclasses
from typing import Any

from irscope.events.stack import name_of_code
from irscope.events.trace import GRAPH_BREAK, RECOMPILATION, Record, is_skipped, reasons_in
from irscope.internals.dynamo_frames import entry_being_compiled, resumed_code
from irscope.internals.graph_calls import Lines
from irscope.protocol import Compile, CompileOutcome, Origin, Resumed
from irscope.usercode.source import qualified_name_at
from irscope.vocabulary.function_names import RESUME_PREFIX, plain_name, resumed_line

_MOST_CALLERS = 200
"""Lines kept of those that call a compile."""


class CompileBook:
    """What is known about each compile so far.

    ``torch._dynamo.reset()`` makes PyTorch count its frames from zero again; a compile whose name was in use before
    is then called ``0/0#2``, so that no fact of one is taken for one of the other.
    """

    def __init__(self) -> None:
        self.target = ""  # in a process that compiles for a target: what the names of all compiles end with
        self._compiles: dict[str, Compile] = {}
        self._ended: set[str] = set()
        self._rounds: dict[str, int] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}  # compile → why it is a recompilation, known before it begins

    def name_of(self, record: Record) -> str | None:
        """The name of a record's compile, unique in the run."""
        if record.compile is None:
            return None
        frame, _, count = record.compile.rpartition("/")
        begins = record.event == "dynamo_start" and count == "0" and record.attempt == 0
        if begins and self._round(frame, record.compile) in self._ended:
            self._rounds[frame] = self._rounds.get(frame, 1) + 1
        name = self._round(frame, record.compile)
        return f"{name}/{self.target}" if self.target else name

    def _round(self, frame: str, compile: str) -> str:
        number = self._rounds.get(frame, 1)
        return compile if number == 1 else f"{compile}#{number}"

    def get(self, name: str | None) -> Compile | None:
        """The compile of this id; None for None, and for one that is not known."""
        return self._compiles.get(name) if name is not None else None

    def of_function(self, file: str, line: int) -> list[Compile]:
        """The compiles of the function that begins at a line, in the order of their start."""
        return [compile for compile in self._compiles.values() if (compile.file, compile.line) == (file, line)]

    def programs(self) -> set[str]:
        """The functions, in PyTorch's numbers, that were passed to ``torch.compile`` themselves."""
        return {name.rpartition("/")[0] for name, compile in self._compiles.items() if compile.program}

    def goes_on_after_a_break(self, compile: Compile) -> bool:
        """Whether a graph break cuts a compile's function, so that the rest of it is compiled for itself."""
        resumed = f"{RESUME_PREFIX}{compile.function}_at_"
        return any(each.function.startswith(resumed) and each.file == compile.file for each in self._compiles.values())

    def number_of(self, compile: Compile) -> int:
        """Which compile of its function it is, from 0."""
        same = [c.id for c in self._compiles.values() if (c.file, c.function) == (compile.file, compile.function)]
        return same.index(compile.id)

    def note(self, record: Record, name: str, code: Any) -> Compile | None:
        """Takes in a record; returns the compile where it changed.

        Args:
            code: The code object being compiled, for ``dynamo_start``, if it could be found.
        """
        if record.event == RECOMPILATION:
            self._reasons[name] = tuple(reasons_in(record.payload))
        before = self._compiles.get(name)
        after = self._changed(record, name, code, before)
        if after is None or after == before:
            return None
        self._compiles[name] = after
        return after

    def _changed(self, record: Record, name: str, code: Any, before: Compile | None) -> Compile | None:
        if record.event == "dynamo_start":
            return self._started(record, name, code)
        if before is None:
            if not name.startswith("!"):
                return None
            before = Compile(name, "compiled autograd", "", 1, CompileOutcome.RUNNING, 0, 0, 0.0)
        if record.event == "compiled_autograd_graph":  # all there is of it; Dynamo's compile of it has its own id
            return dataclasses.replace(before, outcome=CompileOutcome.COMPILED)
        restarts = max(before.restarts, record.attempt)
        if record.event == GRAPH_BREAK:
            skipped = is_skipped(record.payload)
            outcome = CompileOutcome.SKIPPED if skipped else CompileOutcome.GRAPH_BREAK
            return dataclasses.replace(before, outcome=outcome, restarts=restarts)
        if record.event == "compilation_metrics":
            self._ended.add(name)
            return _ended(before, record.facts, restarts)
        if record.event == "bwd_compilation_metrics":
            more = float(record.facts.get("inductor_compile_time_s") or 0.0)
            outcome = CompileOutcome.COMPILED if before.outcome is CompileOutcome.RUNNING else before.outcome
            return dataclasses.replace(before, seconds=round(before.seconds + more, 6), outcome=outcome)
        return dataclasses.replace(before, restarts=restarts)

    def called(self, name: str, backward: bool, lines: Lines) -> Compile | None:
        """Takes in the lines that call a graph of a compile; returns the compile where it changed."""
        before = self._compiles.get(name)
        if before is None:
            return None
        known = before.backward_callers if backward else before.callers
        callers = tuple(dict.fromkeys([*known, *(Origin(*line) for line in lines)]))[:_MOST_CALLERS]
        if callers == known:
            return None
        after = (
            dataclasses.replace(before, backward_callers=callers)
            if backward
            else dataclasses.replace(before, callers=callers)
        )
        self._compiles[name] = after
        return after

    def _started(self, record: Record, name: str, code: Any) -> Compile:
        entry = entry_being_compiled()
        frames = record.facts.get("stack") or [{}]
        function = str(getattr(code, "co_name", None) or frames[-1].get("name", "?"))
        file = str(getattr(code, "co_filename", None) or frames[-1].get("filename", "?"))
        line = int(getattr(code, "co_firstlineno", None) or frames[-1].get("line") or 1)
        return Compile(
            id=name,
            function=function,
            file=file,
            line=line,
            outcome=CompileOutcome.RUNNING,
            restarts=0,
            graph_ops=0,
            seconds=0.0,
            reasons=self._reasons.get(name, ()),
            qualified=name_of_code(code) if code is not None else qualified_name_at(file, plain_name(function), line),
            program=entry.program,
            callers=tuple(Origin(*line) for line in dict.fromkeys(entry.callers))[:_MOST_CALLERS],
            module_class=entry.module_class,
            resumed=_resumed(),
        )

    def failed(self, name: str) -> Compile | None:
        """The compile ended with an exception that goes to the user."""
        before = self._compiles.get(name)
        if before is None:
            return None
        self._compiles[name] = dataclasses.replace(before, outcome=CompileOutcome.ERROR)
        return self._compiles[name]


def _resumed() -> Resumed | None:
    code = resumed_code()
    line = resumed_line(code.co_name) if code is not None else None
    return None if code is None or line is None else Resumed(name_of_code(code), code.co_filename, line)


def _ended(before: Compile, facts: dict[str, Any], restarts: int) -> Compile:
    outcome = before.outcome
    if outcome is CompileOutcome.RUNNING:
        outcome = CompileOutcome.COMPILED
    # A frame that Dynamo leaves alone has no graph, not even an empty one.
    left_alone = facts.get("has_guarded_code") is False or facts.get("graph_op_count") is None
    if outcome is not CompileOutcome.ERROR and left_alone:
        outcome = CompileOutcome.SKIPPED
    return dataclasses.replace(
        before,
        outcome=outcome,
        restarts=max(restarts, len(facts.get("restart_reasons") or ())),
        graph_ops=int(facts.get("graph_op_count") or 0),
        seconds=round(float(facts.get("entire_frame_compile_time_s") or 0.0), 6),
    )
