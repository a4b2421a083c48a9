"""Records Dynamo's walk over the user's instructions: the symbolic trace.  `irscope.symbolic.trace` describes the
layout.

A hook runs around each instruction, so that the symbolic stack and locals are seen before it, and the nodes and guards
that came with it after.  Only differences are kept: most steps push one item and
change no local.  Nothing of PyTorch's is called for that; attributes are read, and lazy trackers stay lazy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope.events.recording import Recording
from irscope.internals.dynamo_hooks import steps_hook
from irscope.internals.hooks import Hook


class Recorder:
    """Follows the walks of a process, of which one can lie inside another (a backend that compiles).

    Args:
        begins: Called when an attempt begins; returns its compile and the number of the attempt, or None if the walk is
            of no interest.
        ends: Called with a recording that is complete, or that is about to be handed to the backend.
        failed: Called with the exception where a recording had to be given up.
    """

    def __init__(
        self,
        begins: Callable[[], tuple[str, int] | None],
        ends: Callable[[Recording], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._begins, self._ends, self._failed = begins, ends, failed
        self.hooked = False
        self._open: list[Recording] = []
        self._breaks: dict[str, str] = {}  # compile → why the attempt before was given up

    def hook(self) -> Hook:
        """The hook through which the recorder sees each instruction."""
        return steps_hook(self._before, self._after, self._applied)

    def _applied(self) -> None:
        self.hooked = True

    def _before(self, translator: Any) -> Recording | None:
        recording: Recording | None = None
        try:
            if translator.instruction_pointer is None:
                return None
            recording = self._recording_of(translator)
            if recording is None or recording.broken:
                return None
            recording.begin(translator)
        except Exception as error:  # noqa: BLE001  whatever is not as expected here must not reach Dynamo
            self._give_up(recording, error)
            return None
        return recording

    def _after(self, recording: Recording, translator: Any, more: bool, error: BaseException | None) -> None:
        try:
            recording.end(translator, more, error)
            if not recording.active and not more:
                self._close(recording)
        except Exception as failure:  # noqa: BLE001
            self._give_up(recording, failure)

    def _recording_of(self, translator: Any) -> Recording | None:
        output = translator.output
        for recording in reversed(self._open):
            if recording.output is output:
                return recording
        if translator.inline_depth:
            return None
        of = self._begins()
        if of is None:
            return None
        recording = Recording(*of, output)
        recording.earlier_break = self._breaks.pop(recording.compile, "")
        self._open.append(recording)
        return recording

    def _close(self, recording: Recording) -> None:
        self._open.remove(recording)
        if recording.restarts and recording.break_text:
            self._breaks[recording.compile] = recording.break_text
        self._ends(recording)

    def _give_up(self, recording: Recording | None, error: Exception) -> None:
        if recording is not None:
            recording.broken = True
        self._failed(error)

    def broke(self, message: str) -> None:
        """PyTorch has written a graph break, in the step that runs now."""
        if self._open:
            self._open[-1].broke(message)

    def guarded(self, expression: str) -> None:
        """PyTorch has written a guard on shapes, in the step that runs now."""
        if self._open and (recording := self._open[-1]).active:
            recording.add_guards(recording.active[-1], [f"SHAPE_ENV {expression}"])

    def handed_over(self) -> None:
        """The backend gets the graph now: what it does to this process, the recording is safe."""
        if self._open and not (recording := self._open[-1]).broken:
            recording.outcomes.setdefault(recording.active[0] if recording.active else 0, recording.result())
            self._ends(recording)

    @property
    def is_recording(self) -> bool:
        """Whether the innermost walk is being recorded."""
        return bool(self._open) and not self._open[-1].broken
