"""Watches over the process of a run: takes in what it sends and prints, ends it when it has to, names its outcome."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard

from irscope.driver.abrupt import abrupt_end, gap_of
from irscope.driver.budgets import Limits
from irscope.driver.children import Children
from irscope.driver.faults import Faults
from irscope.driver.launch import Launched
from irscope.protocol import (
    CaptureGap,
    CompileSeen,
    FactsWritten,
    Finding,
    FindingSeen,
    GapSeen,
    KernelsWritten,
    Limit,
    LimitReached,
    Message,
    Outcome,
    OutcomeKind,
    Progress,
    Raised,
    Refused,
    ScriptEnded,
    Started,
    StoreWrite,
    Unfit,
    unpack_message,
)
from irscope.protocol.frames import FrameReader, Payload
from irscope.store.run_writer import RunWriter
from irscope.store.store import Store
from irscope.system.last_words import Ending
from irscope.vocabulary.units import count

# How soon a cancel and a limit are seen; the end of the process, its messages and its output wake us at once.
_TICK_SECONDS = 0.05
_LONG_TICK_SECONDS = 1.0  # where there is neither a cancel nor a limit to be seen
_DRAIN_SECONDS = 2.0
_MOST_GAPS = 10_000
_END = "the end of the process"
_CHILDREN = "messages of processes that the script has started"


class Watch:
    """Reads what a run sends and prints until its process ends, and ends it when it has to.

    Args:
        gaps: What is known not to be captured before the run begins.
        stays: Whether the process waits for rounds of a comparison when the script has ended.
        children: The processes that the script starts; None: they are not followed.
    """

    def __init__(
        self,
        run: str,
        python: str,
        store: Store,
        limits: Limits,
        on_message: Callable[[Message], None],
        on_bytes: Callable[[str, bytes], None] | None,
        gaps: Sequence[CaptureGap] = (),
        on_exit: Callable[[int], None] = lambda code: None,
        stays: bool = False,
        children: Children | None = None,
    ) -> None:
        self._children, self._steady = children, None  # type: Children | None, LimitReached | None
        self._python, self._limits, self._stays = python, limits, stays
        self._run, self._store, self._on_message, self._on_bytes = run, store, on_message, on_bytes
        self._on_exit = on_exit
        self.unfit = ""
        """Why a fork cannot run this script."""
        self._refused: str | None = None
        self._found: Finding | None = None
        self._began = self._is_fork = self._compiled = self._packed = False
        self._ended: ScriptEnded | None = None
        self._ended_at = 0.0
        self._ending = Ending()
        self._gaps = list(gaps)
        self._faults = Faults()
        self._killed_by: str | None = None
        self._frames = FrameReader()
        self._missed = self._strange = 0  # messages, bytes
        self._writer = RunWriter(store, run, self._tell_gap)

    def over(
        self, run: Launched, cancel: threading.Event | None, started: float, *, is_fork: bool = False
    ) -> Outcome | None:
        """The outcome, when the process has ended; None if a fork turned out to be unfit."""
        process, self._is_fork = run.process, is_fork
        selector = _selector_of(run)
        if self._children is not None:
            selector.register(self._children.selector.fileno(), selectors.EVENT_READ, _CHILDREN)  # type: ignore[attr-defined]
        try:
            code, stopped = self._follow(run, selector, cancel)
        except BaseException:  # an interrupt, or a callback that failed: the run must not outlive us
            interrupted = Outcome(OutcomeKind.CANCELLED, None, "irscope was interrupted.", time.monotonic() - started)
            with contextlib.suppress(sqlite3.Error):
                self._store.set_outcome(self._run, interrupted)
            raise
        finally:
            process.kill()
            selector.close()
            process.close()
            self._finish()
            for fd in (run.messages, *run.outputs):
                os.close(fd)
        if self.unfit and stopped is None:
            return None
        if stopped is None:
            self._on_exit(code)
            self._killed_by = _how(code) if code < 0 else None
        # A process that waits for rounds of a comparison has done its work when the script has ended.
        until = self._ended_at if self._stays and self._ended_at else time.monotonic()
        return self._outcome(code, stopped, round(until - started, 3))

    def _follow(
        self, run: Launched, selector: selectors.BaseSelector, cancel: threading.Event | None
    ) -> tuple[int, OutcomeKind | None]:
        """Reads until the process has ended: what it ended with, and why it was stopped, if it was."""
        process = run.process
        watchful = cancel is not None or self._limits.need_looks or process.status_fd is None
        stopped: OutcomeKind | None = None
        while (code := process.poll()) is None:
            stopped = stopped or self._reason_to_stop(process.pid, cancel)
            ending = stopped is not None or bool(self.unfit)
            if ending:
                process.kill()
                if self._limits.reached is Limit.OUTPUT:  # it may print on until it is dead
                    _unregister(selector, run.outputs)
            self._read(selector, _TICK_SECONDS if watchful or ending else _LONG_TICK_SECONDS)
        if process.status_fd is not None:
            _unregister(selector, [process.status_fd])
        # What was written before the end.  A child that lives on is not waited for, even if it prints on and on.
        drained = time.monotonic() + _DRAIN_SECONDS
        while self._read(selector, 0) and time.monotonic() < drained:
            pass
        if stopped is None and not self.unfit:
            self._take_ending(process.ending())
        return code, stopped

    def _reason_to_stop(self, pid: int, cancel: threading.Event | None) -> OutcomeKind | None:
        if cancel is not None and cancel.is_set():
            return OutcomeKind.CANCELLED
        return OutcomeKind.BUDGET if self._limits.look(pid) is not None else None

    def raised(self, outcome: Outcome) -> list[Raised]:
        """What ended the script, as an exception or a signal: of a signal one for each thread, the likeliest first."""
        if outcome.kind is OutcomeKind.SCRIPT_ERROR and self._ended is not None and self._ended.raised is not None:
            return [self._ended.raised]
        if outcome.kind is not OutcomeKind.CRASHED or self._killed_by is None:
            return []
        return [Raised(self._killed_by, "", stack, is_signal=True) for stack in self._faults.stacks()]

    def _read(self, selector: selectors.BaseSelector, timeout: float) -> bool:
        """Takes in what has arrived; False if nothing has arrived."""
        if not selector.get_map():
            if timeout:
                time.sleep(timeout)
            return False
        arrived = False
        for key, _ in selector.select(timeout):
            if key.data is _END:
                continue
            if key.data is _CHILDREN and self._children is not None:
                arrived = self._children.read() or arrived
                self._limits_of_children(self._children)
                continue
            data = os.read(key.fd, 1 << 16)
            if not data:
                selector.unregister(key.fd)
                continue
            arrived = True
            if key.data is None:
                self._take(data)
            elif self._on_bytes is not None:
                self._limits.printed(len(data))
                self._on_bytes(key.data, data)
        return arrived

    def _limits_of_children(self, children: Children) -> None:
        """The steady state of a script with processes is that of all that compiled something."""
        if (steady := children.steady) is not None and (not self._compiled or self._steady is not None):
            self._limits.told(steady)

    def _take(self, data: bytes) -> None:
        """What has come of the run: into the store, and then to who listens."""
        self._take_parts(self._frames.feed(data))

    def _take_parts(self, parts: Iterable[Payload | bytes]) -> None:
        messages = []
        for part in parts:
            if isinstance(part, Payload):
                self._missed += part.missed
                try:
                    messages.append(unpack_message(part.data))
                except (ValueError, KeyError, TypeError, RecursionError):
                    self._missed += 1
            else:
                # A fault; or a script writes into every descriptor that it finds.
                self._strange += self._faults.feed(part)
        kept: list[Message | StoreWrite] = []
        told = [message for message in messages if self._takes(message, kept)]
        self._writer.put(kept)
        for message in told:
            self._on_message(message)

    def _take_ending(self, ending: Ending) -> None:
        """What the parent of the script's process has seen, where the process itself has not told it."""
        if (
            gap := gap_of(ending, self._ended is not None, self._children is not None and self._children.compiled > 0)
        ) is not None:
            self._tell_gap(gap)
        self._ending, self._ended = ending, self._ended or ending.said

    def _takes(self, message: Message | StoreWrite, kept: list[Message | StoreWrite]) -> TypeGuard[Message]:
        """Whether a message is to be told; ``kept`` gets it if it is to be stored."""
        if isinstance(message, Refused):
            if self._began:
                return False  # irscope sends it before the script begins; later only the script can have written it
            self._refused = message.reason
        elif isinstance(message, Unfit):
            if self._is_fork:
                self.unfit = message.reason or "the script asked for it"
            return False
        elif isinstance(message, Started):
            self._began = True
        elif isinstance(message, ScriptEnded):
            self._ended, self._ended_at = message, time.monotonic()
        elif isinstance(message, (LimitReached, CompileSeen, GapSeen, FindingSeen)):
            self._note(message)
        elif not isinstance(message, (KernelsWritten, Progress)):
            self._packed |= isinstance(message, FactsWritten) and "packages" in message.facts
            kept.append(message)
            return False
        kept.append(message)
        return True

    def _note(self, message: LimitReached | CompileSeen | GapSeen | FindingSeen) -> None:
        """Remembers what decides how the run ends."""
        if isinstance(message, LimitReached):
            self._steady = message
            if self._children is None or not self._children.is_busy:
                self._limits.told(message)
        elif isinstance(message, CompileSeen):
            self._compiled, self._steady = True, None
        elif isinstance(message, GapSeen):
            self._add_gap(message.gap)
        else:
            self._found = self._found or message.finding

    def _tell_gap(self, gap: CaptureGap) -> None:
        """A gap about what is not stored: the run's process does not know it."""
        if gap not in self._gaps:
            self._add_gap(gap)
            self._on_message(GapSeen(gap))

    def _add_gap(self, gap: CaptureGap) -> None:
        if gap not in self._gaps and len(self._gaps) < _MOST_GAPS:
            self._gaps.append(gap)

    def _finish(self) -> None:
        """The process has ended: what is left is taken in, and the gaps are stored."""
        if self._children is not None:
            self._children.finish()
        strange = self._strange
        self._take_parts(self._frames.rest())
        self._strange = strange  # the last frame is not complete if the process was killed
        if self._missed or self._strange:
            why = (
                f"{count(self._missed, 'message')} did not arrive and {count(self._strange, 'byte')} were of none, "
                "as when a script writes into descriptors that it has not opened"
            )
            self._add_gap(CaptureGap("a part of what was captured", why))
        self._writer.finish()
        self._writer.put([GapSeen(gap) for gap in self._gaps])
        self._writer.finish()

    def _outcome(self, code: int, stopped: OutcomeKind | None, seconds: float) -> Outcome:
        if self._refused is not None:
            return Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, self._refused, seconds)
        if stopped is OutcomeKind.CANCELLED:
            return Outcome(stopped, None, "The run was cancelled. Findings up to then are kept.", seconds)
        if stopped is OutcomeKind.BUDGET:
            return Outcome(stopped, None, self._limits.message, seconds, self._limits.reached)
        if not self._began:
            return Outcome(
                OutcomeKind.ENVIRONMENT_ERROR, None, no_python(self._python, f"it ended with {_how(code)}"), seconds
            )
        if code == -signal.SIGINT and self._ended is not None and self._ended.error:
            return Outcome(OutcomeKind.SCRIPT_ERROR, None, f"The script ended with {self._ended.error}.", seconds)
        if code < 0 or self._ended is None:
            kind, message = abrupt_end(code, _how(code), self._ending)
            return Outcome(kind, code if code >= 0 else None, message, seconds)
        if self._ended.error:
            return Outcome(OutcomeKind.SCRIPT_ERROR, code, self._ended.error, seconds, place=self._ended.place)
        if code != 0:
            return Outcome(
                OutcomeKind.SCRIPT_ERROR,
                code,
                f"The script succeeded, but its process ended with exit code {code}.",
                seconds,
            )
        return Outcome(OutcomeKind.COMPLETED, 0, self._completed(), seconds)

    def _completed(self) -> str:
        if self._children is not None and (number := self._children.compiled):
            return f"The script ran to its end. {count(number, 'process', 'processes')} that it started compiled something."
        if self._compiled:  # as it was told: the store may not have been writable
            return "The script ran to its end."
        if (found := self._found) is not None:
            place = f"{os.path.basename(found.file)}:{found.range.start.line}"
            return f"The script ran to its end, and nothing was compiled: the finding at {place} says why."
        if self._packed:
            return "The script ran to its end. It made a package of AOTInductor by itself, and no function under torch.compile was called with tensors."
        if self._gaps:
            gap = self._gaps[0]
            return f"The script ran to its end, and nothing was compiled. What could not be captured: {gap.what} ({gap.why})."
        return "The script ran to its end, and nothing was compiled: no function under torch.compile was called with tensors."


def _selector_of(run: Launched) -> selectors.BaseSelector:
    """Waits for the messages of a run, for what it prints, and for its end."""
    selector = selectors.DefaultSelector()
    selector.register(run.messages, selectors.EVENT_READ, None)
    for fd, name in run.outputs.items():
        selector.register(fd, selectors.EVENT_READ, name)
    if run.process.status_fd is not None:
        selector.register(run.process.status_fd, selectors.EVENT_READ, _END)
    return selector


def _unregister(selector: selectors.BaseSelector, fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(KeyError):
            selector.unregister(fd)


def no_python(python: str, why: str) -> str:
    """The message for an interpreter that ended, or could not start, before the script began."""
    return f"{python} is not a Python that irscope can use: {why} before the script began. Name one that has torch (--python PATH, or the setting irscope.python)."


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
