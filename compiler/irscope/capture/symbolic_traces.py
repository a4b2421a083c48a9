"""The symbolic traces of a run: a stage ``symbolic-trace`` for each attempt of a compile.

The last attempt's id is ``0/0/symbolic-trace``; one after which Dynamo began again is ``0/0/symbolic-trace/attempt-0``.
What was at hand when a graph broke inside an inlined call is in the attempt before: the last one does not go there.
"""

from __future__ import annotations

from irscope.capture.run_book import RunBook
from irscope.events.recording import Recording
from irscope.events.symbolic import Recorder
from irscope.events.trace import GRAPH_BREAK, Record
from irscope.internals.dynamo_hooks import STEPS, STEPS_CHECKED
from irscope.internals.hooks import Hook
from irscope.pipelines.dynamo_stages import SYMBOLIC_TRACE
from irscope.protocol import CaptureGap


class SymbolicTraces:
    """Records them where the request wants them."""

    def __init__(self, book: RunBook) -> None:
        wanted = book.request.symbolic_trace
        self._wanted = book.is_deep if wanted is None else wanted
        self._book = book
        self._recorder = Recorder(self._begins, book.guarded(self._ends), self._failed)

    def hooks(self) -> list[Hook]:
        """The recorder's hook; empty if the request wants no symbolic traces."""
        return [self._recorder.hook()] if self._wanted else []

    def note(self, record: Record) -> None:
        """Takes in a record, in the step that brought it about."""
        if not self._wanted:
            return
        if record.event == GRAPH_BREAK:
            self._recorder.broke(record.payload)
        elif record.event == "guard_added_fast":
            self._recorder.guarded(str(record.facts.get("expr", "")))
        elif record.event == "dynamo_output_graph":
            if self._recorder.hooked and not self._recorder.is_recording:
                self._book.gap(CaptureGap(STEPS, f"no step of {record.compile} was seen"))
            self._recorder.handed_over()

    def _begins(self) -> tuple[str, int] | None:
        return self._book.current(SYMBOLIC_TRACE.name)

    def _ends(self, recording: Recording) -> None:
        data, name = recording.data(), SYMBOLIC_TRACE.name
        is_last = data["last"]
        id = f"{recording.compile}/{name}" + ("" if is_last else f"/attempt-{recording.attempt}")
        shift = 0 if is_last else -1 / (2 + recording.attempt)
        self._book.write_stage(recording.compile, name, id, None, data, shift=shift)

    def _failed(self, error: Exception) -> None:
        self._book.gap(
            CaptureGap(STEPS, f"a part of it was not recorded ({error!r}); checked on torch {STEPS_CHECKED}")
        )
