"""Whether a script that failed inside compiled code also fails without compile, and if not, with which layer it begins.

The script runs again in processes of its own, under the same limits, and what these runs find is not kept.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import tempfile
import threading
from collections.abc import Callable

from irscope.driver.driver import RunSpec, execute
from irscope.findings.endings import is_user
from irscope.findings.kinds.compiled_code_error import INDUCTOR, OWN_BACKEND, of_script, to_check, words_of
from irscope.pipelines.registry import role_of
from irscope.protocol import (
    EAGER,
    Finding,
    FindingSeen,
    Lane,
    Message,
    Outcome,
    OutcomeKind,
    Progress,
    Report,
    ScriptEnded,
)
from irscope.store.store import Store
from irscope.usercode.source import range_of_focus
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.worker.client import Worker

_AOT_EAGER = "aot_eager"


@dataclass(frozen=True)
class _Ended:
    """How the script ended in one of the runs, with the innermost line of the user's that an exception came from."""

    outcome: Outcome
    place: tuple[str, int] | None

    @property
    def is_well(self) -> bool:
        return self.outcome.kind is OutcomeKind.COMPLETED

    @property
    def is_whole(self) -> bool:
        """Whether the script ended by itself."""
        return self.outcome.kind in (OutcomeKind.COMPLETED, OutcomeKind.SCRIPT_ERROR, OutcomeKind.CRASHED)


def check_without_compile(
    spec: RunSpec,
    store: Store,
    run: str,
    *,
    on_message: Callable[[Message], None] = lambda message: None,
    cancel: threading.Event | None = None,
    worker: Worker | None = None,
) -> bool:
    """Adds to the error that ended a run whether it comes of compiling alone; False if there is none, or the check was
    cancelled.

    An error in compiled code and a compile error learn it in their finding.  Another exception is a separate
    finding if the script works without compile, and else the outcome says that it does not.

    Args:
        spec: What the run was asked for.
        on_message: Called with the progress, and with the finding as it is now.
        cancel: Set by another thread to stop the check.
        worker: As `execute` has it.
    """
    report = store.report(run)
    found = to_check(report)
    if found is None and not _may_be_caused_by_compiling(report):
        return False
    on_message(Progress("checking without compile", "checking without compile"))
    without = _ended(dataclasses.replace(spec, without_compile=True), EAGER, cancel, worker)
    if without.outcome.kind is OutcomeKind.CANCELLED:
        return False
    layer = ""
    if without.is_well:
        layer = _first_layer_that_fails(spec, _last_layer(report), on_message, cancel, worker)
    if found is None and not without.is_well:
        _say_that_it_is_the_script(store, run, report.outcome, without.outcome)
        return True
    if found is not None:
        same = not without.is_well and _is_same(found, report.outcome, without)
        checked = words_of(found, without.outcome, is_same=same, layer=layer)
    else:
        place = report.outcome.place
        assert place is not None, "_may_be_caused_by_compiling has asked"
        checked = of_script(report.outcome, place.file, range_of_focus(place.file, place.line), layer)
    store.put_finding(run, checked)
    on_message(FindingSeen(checked))
    return True


def _may_be_caused_by_compiling(report: Report) -> bool:
    """Whether an exception ended a script that compiled something, at a known line of the user's."""
    ended = report.outcome
    return bool(report.compiles) and ended.kind is OutcomeKind.SCRIPT_ERROR and ended.place is not None


def _say_that_it_is_the_script(store: Store, run: str, before: Outcome, without: Outcome) -> None:
    same = before.without_place == without.without_place
    how = (
        "It fails without compile, too: the fault is in the script." if same else f"Without compile: {without.message}"
    )
    store.set_outcome(run, dataclasses.replace(before, message=f"{before.message.rstrip('.')}. {how}"))


def _last_layer(report: Report) -> str:
    """What is below AOTAutograd: Inductor, if its code was captured, else a backend of the script's own."""
    stages = (stage for compile in report.compiles for stage in compile.stages)
    return INDUCTOR if any(role_of(stage.name) is Role.CODE for stage in stages) else OWN_BACKEND


def _first_layer_that_fails(
    spec: RunSpec,
    last: str,
    on_message: Callable[[Message], None],
    cancel: threading.Event | None,
    worker: Worker | None,
) -> str:
    """The first backend with which it fails: eager, aot_eager or the last one; empty if that is not known."""
    for backend in (EAGER, _AOT_EAGER) if spec.lane is Lane.DEEP else (EAGER,):
        on_message(Progress(f"checking with backend={backend!r}", f"checking with {backend}"))
        ended = _ended(spec, backend, cancel, worker)
        if not ended.is_whole:
            return ""
        if not ended.is_well:
            return backend
    return last


def _ended(spec: RunSpec, backend: str, cancel: threading.Event | None, worker: Worker | None) -> _Ended:
    """Runs the script once more, in the fast lane; what it prints is dropped."""
    budget = dataclasses.replace(spec.budget, steady_calls=None)
    again = dataclasses.replace(spec, lane=Lane.FAST, only_backend=backend, budget=budget, values=None)
    ends: list[ScriptEnded] = []

    def on_message(message: Message) -> None:
        if isinstance(message, ScriptEnded):
            ends.append(message)

    with (
        tempfile.TemporaryDirectory(prefix="irscope-check-") as folder,
        Store(os.path.join(folder, "runs.db")) as store,
    ):
        _, outcome = execute(
            again, store, on_message=on_message, on_bytes=lambda stream, data: None, cancel=cancel, worker=worker
        )
    raised = ends[-1].raised if ends else None
    mine = [frame for frame in raised.stack if is_user(frame.file)] if raised is not None else []
    return _Ended(outcome, (mine[-1].file, mine[-1].line) if mine else None)


def _is_same(found: Finding, before: Outcome, without: _Ended) -> bool:
    """Whether it is the same failure: the same signal, the same exception and text, or an exception at a line that the
    finding names."""
    if OutcomeKind.CRASHED in (before.kind, without.outcome.kind):
        # An exception inside a parallel kernel cannot be caught, and aborts.
        aborted = found.code == signal.SIGABRT.name
        if not aborted or without.outcome.kind is OutcomeKind.CRASHED:
            return before.without_place == without.outcome.without_place
    if before.without_place == without.outcome.without_place:
        return True
    places = {(found.file, found.range.start.line), *((one.file, one.range.start.line) for one in found.related)}
    return without.place in places
