"""The symbolic traces of a run, as a session writes them: a stage ``symbolic-trace`` for each attempt of a compile.

The last attempt's id is ``0/0/symbolic-trace``; one after which Dynamo began anew is ``0/0/symbolic-trace/attempt-0``.
What was at hand when a graph broke inside an inlined call is in the attempt before: the last one does not go there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook
from irscope.capture.recording import Recording
from irscope.capture.stages import KINDS, position
from irscope.capture.symbolic import WHAT, Recorder
from irscope.capture.trace import Record
from irscope.findings import graph_break
from irscope.protocol import CaptureGap, Lane, RunRequest, StageRef

NAME = "symbolic-trace"
WriteStage = Callable[[str, StageRef, str | None, float, object], None]


class Walks:
    """Records them where the request wants them.

    Parameters
    ----------
    current
        The compile that is going on, by the name that it has in the run.
    write
        Writes a stage: compile, stage, text, position, data.
    """

    def __init__(
        self,
        request: RunRequest,
        current: Callable[[str], str | None],
        write: WriteStage,
        gap: Callable[[CaptureGap], None],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        wanted = request.symbolic_trace
        self._wanted = request.lane is Lane.DEEP if wanted is None else wanted
        self._current, self._write, self._gap = current, write, gap
        self._recorder = Recorder(self._begins, guarded(self._ends), self._failed)

    def hooks(self) -> list[Hook]:
        return [self._recorder.hook()] if self._wanted else []

    def note(self, record: Record) -> None:
        """Takes in a record, in the step that brought it about."""
        if not self._wanted:
            return
        if record.event == graph_break.EVENT:
            self._recorder.broke(record.payload)
        elif record.event == "guard_added_fast":
            self._recorder.guarded(str(record.facts.get("expr", "")))
        elif record.event == "dynamo_output_graph":
            if self._recorder.hooked and not self._recorder.is_recording:
                self._gap(CaptureGap(WHAT, f"no step of {record.compile} was seen"))
            self._recorder.handed_over()

    def _begins(self) -> tuple[str, int] | None:
        guards: Any = sys.modules["torch._guards"]
        trace_id = guards.CompileContext.current_trace_id()
        name = self._current(NAME)
        return None if name is None else (name, int(trace_id.attempt))

    def _ends(self, recording: Recording) -> None:
        data = recording.data()
        id = f"{recording.compile}/{NAME}" + ("" if data["last"] else f"/attempt-{recording.attempt}")
        order = position(NAME, False) - (0 if data["last"] else 1 / (2 + recording.attempt))
        self._write(recording.compile, StageRef(id, NAME, KINDS[NAME].language, 0), None, order, data)

    def _failed(self, error: Exception) -> None:
        self._gap(CaptureGap(WHAT, f"a part of it was not recorded ({error!r}); checked on torch 2.9 to 2.15"))
