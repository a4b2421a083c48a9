"""What every pipeline after Dynamo captures: compiles, bytecode, its graph, guards, symbols, times and findings."""

from __future__ import annotations

import dataclasses
import dis
import types
from collections.abc import Mapping

from irscope.capture.ahead_of_time import AheadOfTime
from irscope.capture.base import Capture
from irscope.capture.progress import DYNAMO_PHASES, ProgressTeller
from irscope.capture.run_book import RunBook
from irscope.capture.script_programs import ScriptPrograms
from irscope.capture.stages import DYNAMO_EVENTS, clean
from irscope.capture.symbolic_traces import SymbolicTraces
from irscope.capture.timing import PhaseStages, SymbolStages
from irscope.events.listening import LogHandler
from irscope.events.trace import Record, TraceHandler
from irscope.findings.moment import look
from irscope.internals import dynamo_hooks, failed_programs, graph_calls, guard_costs, inlined, own_frames, unread
from irscope.internals.dynamo_frames import code_being_compiled
from irscope.internals.hooks import Hook
from irscope.pipelines import dynamo_stages
from irscope.protocol import Compile
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.stages import StageKind


class DynamoCapture(Capture):
    """Receives PyTorch's trace.  A pipeline that runs after Dynamo overrides what comes after Dynamo.

    Attributes:
        EVENTS: By event of the trace the stage whose text its record carries.
        PHASES: By event what is going on from then on, for a status line; ``{}`` is the number of the frame.
    """

    EVENTS: Mapping[str, StageKind] = DYNAMO_EVENTS
    PHASES: Mapping[str, str] = DYNAMO_PHASES

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self.progress = ProgressTeller(book.send, self.PHASES)
        self._symbols = SymbolStages(book)
        self._phases = PhaseStages(book)
        self._symbolic_traces = SymbolicTraces(book)
        self._script_programs = ScriptPrograms(book)
        self._ahead_of_time = AheadOfTime(book, self._receive)
        timing = book.guarded(self._phases.note) if book.is_deep else None
        self._trace = TraceHandler(book.guarded(self._receive), timing)

    def hooks(self) -> list[Hook]:
        """What is patched in PyTorch while the run is captured."""
        return [
            own_frames.hook(),
            graph_calls.asking_hook(),
            dynamo_hooks.bytecode_hook(self.book.guarded(self._see_bytecode)),
            *self.book.findings.hooks(self.book.guarded),
            unread.hook(TraceHandler),
            *self._symbolic_traces.hooks(),
            self._script_programs.hook(),
            *self._ahead_of_time.hooks(),
        ]

    def handlers(self) -> list[LogHandler]:
        """What listens to PyTorch's logs: its trace, and what findings need."""
        return [self._trace, *self.book.findings.handlers(self.book.guarded)]

    # --- for what comes after Dynamo ----------------------------------------------------------------------------------

    def note(self, record: Record, compile: str) -> None:
        """Takes in a record that carries no stage; ``compile`` is the name of its compile in the run."""

    def shown_as(self, code: types.CodeType) -> types.CodeType:
        """The function that a compile is listed as: of a graph that the pipeline itself made, the user's function."""
        return code

    def is_about_the_script(self, record: Record) -> bool:
        """Whether a record may be a finding: not where the pipeline itself is the cause."""
        return True

    def is_backward(self, kind: StageKind, text: str) -> bool:
        """Whether a stage belongs to the lowering of the backward graph alone."""
        return False

    def data_of(self, record: Record, compile: str, kind: StageKind, backward: bool) -> object:
        """What is to be kept beside the text of a stage; called on the stack of its record."""
        is_costly = kind is dynamo_stages.GUARDS and self.book.is_deep
        return guard_costs.measure() if is_costly else None

    def stage_written(self, record: Record, kind: StageKind, id: str, text: str, backward: bool, data: object) -> None:
        """A stage of the trace is in the store; ``record.compile`` is the name of its compile in the run."""

    # --- the trace ----------------------------------------------------------------------------------------------------

    def _receive(self, record: Record) -> None:
        book = self.book
        name = book.compiles.name_of(record)
        record = dataclasses.replace(self._ahead_of_time.completed(record), compile=name)
        self._symbols.note(record)
        if name is None:
            return
        self._symbolic_traces.note(record)
        if record.event == "compilation_metrics":
            self._phases.metrics(record)
        code = code_being_compiled() if record.event == "dynamo_start" else None
        shown = self.shown_as(code) if code is not None else None
        changed = book.compiles.note(record, name, shown)
        if changed is not None:
            book.put_compile(changed)
        kind, text, backward = self._stage_of(record)
        if (going_on := book.compiles.get(name)) is not None:
            self.progress.phase(record.event, going_on, backward)
        if self.is_about_the_script(record):
            book.findings.note(record)
        if record.event == "dynamo_error" and (failed := book.compiles.get(name)):
            book.put_compile(failed)
            self._put_reproducer(record, failed)
        if code is not None and shown is code and record.attempt == 0:
            book.put_stage(name, dynamo_stages.BYTECODE.name, _disassemble(code))
        if kind is None:
            self.note(record, name)
            return
        data = self.data_of(record, name, kind, backward)
        id = book.put_stage(name, kind.name, text, record.attempt, data, backward)
        self.stage_written(record, kind, id, text, backward, data)

    def _put_reproducer(self, record: Record, failed: Compile) -> None:
        """Keeps the script that fails by itself as this compile did, if there is one."""
        error = look(record, failed).error
        if (script := failed_programs.script_of(error)) is not None:
            data = {"error": failed_programs.first_line(error)}
            self.book.put_stage(failed.id, dynamo_stages.REPRODUCER.name, script, data=data)

    def _stage_of(self, record: Record) -> tuple[StageKind | None, str, bool]:
        """The kind of the stage that a record carries, None if it carries none; its text; whether it is of a backward."""
        kind = self.EVENTS.get(record.event)
        if kind is None:
            return None, "", False
        text = clean(record)
        return kind, text, self.is_backward(kind, text)

    def _see_bytecode(self, _original: types.CodeType, modified: types.CodeType) -> None:
        if (current := self.book.current()) is not None:
            functions = inlined.functions_of(inlined.traced_codes())
            for file in dict.fromkeys(file for file, _, _ in functions):
                if is_user_file(file):
                    self.book.keep_source(file)
            kind = dynamo_stages.MODIFIED_BYTECODE.name
            self.book.put_stage(current[0], kind, _disassemble(modified), current[1], {"functions": functions})


def _disassemble(code: types.CodeType) -> str:
    return dis.Bytecode(code).dis()
