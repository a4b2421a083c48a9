"""The book of a run: everything that a capture finds goes through it to the process that keeps it.

It knows no store: what is to be kept is sent, and put into the store by the process that reads it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from irscope.events.compiles import CompileBook
from irscope.events.trace import Record
from irscope.findings.book import FindingBook
from irscope.internals.compile_context import current_compile
from irscope.ir.nodes import count_of, operation_count
from irscope.pipelines.registry import position, stage_kind
from irscope.protocol import (
    CaptureGap,
    Compile,
    CompileSeen,
    DataWritten,
    Finding,
    FindingSeen,
    GapSeen,
    Kernel,
    KernelsWritten,
    Lane,
    Message,
    PredictionWritten,
    RunRequest,
    SourceWritten,
    StageRef,
    StageWritten,
    StoreWrite,
    json_text,
)
from irscope.usercode.source import read_source
from irscope.vocabulary.visible import bounded

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _locked(write: Callable[Concatenate[RunBook, _P], _R]) -> Callable[Concatenate[RunBook, _P], _R]:
    """A method that one thread at a time is in.  In a forked child, where nothing is captured, the lock is left alone."""

    @functools.wraps(write)
    def locked(book: RunBook, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with book.lock if book.is_open else contextlib.nullcontext():
            return write(book, *args, **kwargs)

    return locked


class RunBook:
    """Writes what is known about a run, and knows what has been written.

    Args:
        request: What was asked for.
        send: Tells who started the run what happens.
        keep: Takes what only the store keeps; None: nobody keeps it.

    Attributes:
        stage_refs: All stages that were written, by ID.
        compiles, findings: What is known so far.
        operations: How many operations the captured graphs have, of those compiles that PyTorch has no count for; who
            compiles a program in its own way adds the id of its compile.
    """

    def __init__(
        self,
        request: RunRequest,
        send: Callable[[Message], None],
        keep: Callable[[StoreWrite], None] | None = None,
    ) -> None:
        self.request, self.send, self._keep = request, send, keep
        self.stage_refs: dict[str, StageRef] = {}
        self.compiles = CompileBook()
        self.findings = FindingBook(self.compiles, self.publish, self.current_compile)
        self.operations: dict[str, int] = {}
        self._lock = threading.RLock()
        self._is_open = True
        self._local = threading.local()
        self._stage_ids: dict[str, int] = {}  # stage id → the compile attempt that wrote it
        self._sources: set[str] = set()  # files whose text is in the store
        self._gaps: set[CaptureGap] = set()

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.request.run

    @property
    def is_deep(self) -> bool:
        """Whether the run goes all the way down."""
        return self.request.lane is Lane.DEEP

    # --- calls from PyTorch -------------------------------------------------------------------------------------------

    @property
    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """The lock around everything that is written."""
        return self._lock

    @property
    def is_open(self) -> bool:
        """Whether something is captured: not in a forked child, nor after the end."""
        return self._is_open

    @property
    def is_kept(self) -> bool:
        """Whether anybody keeps what is written."""
        return self._keep is not None

    @property
    def is_quiet(self) -> bool:
        """Whether this thread does work of irscope's, of which nothing is captured."""
        return getattr(self._local, "quiet", False)

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Does work in the middle of the script of which nothing is to be captured, in this thread."""
        self._local.quiet = True
        try:
            yield
        finally:
            self._local.quiet = False

    def guarded(self, receive: Callable[..., None]) -> Callable[..., None]:
        """Whatever ``receive`` raises is a gap; it is called by one thread at a time."""

        def guarded(*args: object) -> None:
            if self._captures():  # before the lock, which nobody may be left to release in a forked child
                with self._lock:
                    self._caught(receive, args)

        return guarded

    def caught(self, work: Callable[[], None]) -> None:
        """Does work that may take long, such as a whole compile, which other threads may be a part of and report to the
        book meanwhile.  Whatever it raises is a gap."""
        if self._captures():
            self._caught(work, ())

    def _captures(self) -> bool:
        return self._is_open and not self.is_quiet

    def _caught(self, receive: Callable[..., None], args: tuple[object, ...]) -> None:
        try:
            receive(*args)
        except Exception as error:  # noqa: BLE001  a capture never fails as a whole (invariant 7)
            what = f"part of the event {args[0].event}" if args and isinstance(args[0], Record) else "an event"
            self.gap(CaptureGap(what, f"{type(error).__name__}: {error}"))

    @contextlib.contextmanager
    def compiling(self, compile: str) -> Iterator[None]:
        """What happens in this thread belongs to a compile of the run that PyTorch has no id of."""
        self._local.compile = compile
        try:
            yield
        finally:
            self._local.compile = None

    def current(self, event: str = "stage") -> tuple[str, int] | None:
        """The compile that is going on in this thread, by its name in the run, and how often it was restarted.

        Args:
            event: What has happened in it.
        """
        if (known := getattr(self._local, "compile", None)) is not None:
            return known, 0
        at = current_compile()
        if at is None:
            return None
        id, attempt = at
        name = self.compiles.name_of(Record(event, {}, id, attempt, ""))
        return None if name is None else (name, attempt)

    def current_compile(self, event: str) -> str | None:
        """The name of the compile that is going on in this thread."""
        current = self.current(event)
        return None if current is None else current[0]

    # --- writing ------------------------------------------------------------------------------------------------------

    @_locked
    def put_compile(self, compile: Compile) -> None:
        """A compile is new, or something of it changed."""
        self.keep_source(compile.file)
        self.send(CompileSeen(compile))

    @_locked
    def put_stage(
        self, compile: str, name: str, text: str, attempt: int = 0, data: object = None, backward: bool = False
    ) -> str:
        """Writes a stage of a compile.

        Args:
            name: Its kind.
            attempt: How often the compile was restarted: its stages are then written again.
            data: What the text does not tell, as plain JSON values.
            backward: Whether it belongs to the lowering of the backward graph.

        Returns the id of the stage.
        """
        id = self._new_stage_id(f"{compile}/{name}{'-backward' if backward else ''}", attempt)
        self.write_stage(compile, name, id, text, data, backward=backward)
        if compile in self.operations and stage_kind(name).is_captured:
            self.operations[compile] += operation_count(data, text)
        return id

    def write_stage(
        self,
        compile: str,
        name: str,
        id: str,
        text: str | None,
        data: object = None,
        *,
        backward: bool = False,
        shift: float = 0.0,
        language: str = "",
    ) -> None:
        """Writes a stage whose id is known, over what it was.

        Args:
            text: None: it is made from the data when it is read.
            shift: Where it is in the order of the stages, relative to others of its kind.
            language: Language of its text, if the kind does not say it.
        """
        ref = StageRef(id, name, language or stage_kind(name).language, len(text or ""))
        self.write_version(compile, ref, text, position(name, backward) + shift, data)

    @_locked
    def write_version(self, compile: str, stage: StageRef, text: str | None, order: float, data: object = None) -> None:
        """Writes a stage as it was after a pass; ``order`` says where it is among all stages of the compile."""
        self.stage_refs[stage.id] = stage
        if self._keep is not None:
            nodes = count_of(stage.name, data) if stage.nodes is None else stage.nodes
            stage = dataclasses.replace(stage, nodes=nodes)
            self._keep(StageWritten(compile, stage, order, text, json_text(data)))

    @_locked
    def keep_child_s(self, written: StageWritten) -> None:
        """A stage that a child has written: the next one of its kind gets a number."""
        id = written.stage.id
        self._stage_ids[id] = self._stage_ids.get(id, 0)
        self.stage_refs[id] = written.stage
        if self._keep is not None:
            self._keep(written)

    @_locked
    def put_data(self, stage: str, data: object) -> None:
        """Replaces the data of a stage."""
        if self._keep is not None:
            nodes = count_of(self.stage_refs[stage].name, data) if stage in self.stage_refs else None
            self._keep(DataWritten(stage, json_text(data), nodes))

    def _new_stage_id(self, base: str, attempt: int) -> str:
        """A restarted compile writes its stages again, over the old ones; a second graph in one attempt gets a number."""
        id, number = base, 1
        while self._stage_ids.get(id) == attempt:
            number += 1
            id = f"{base}-{number}"
        self._stage_ids[id] = attempt
        return id

    @_locked
    def put_kernels(self, kernels: Iterable[Kernel]) -> None:
        """Kernels are new, or something of them changed."""
        if self._keep is not None:
            written = tuple(kernels)
            self.send(KernelsWritten(written))
            for file in dict.fromkeys(origin.file for kernel in written for origin in kernel.origins):
                self.keep_source(file)  # also of a package: who opens a file of a model's asks for its kernels

    @_locked
    def publish(self, finding: Finding) -> None:
        """A finding is new, or something of it changed."""
        message, explanation = bounded(finding.message), bounded(finding.explanation)
        finding = dataclasses.replace(finding, message=message, explanation=explanation)
        self.keep_source(finding.file)
        self.send(FindingSeen(finding))

    @_locked
    def gap(self, gap: CaptureGap) -> None:
        """Something could not be captured; the same one is told once."""
        gap = CaptureGap(bounded(gap.what), bounded(gap.why))
        if gap in self._gaps or not self._is_open:
            return
        self._gaps.add(gap)
        self.send(GapSeen(gap))

    @_locked
    def keep_source(self, file: str) -> None:
        """Keeps the text that a file has in this run; later it may be another one."""
        if self._keep is not None and file not in self._sources:
            self._sources.add(file)
            if text := read_source(file):
                self._keep(SourceWritten(file, text))

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stops the capture: at the end of a run, and in a child that the script has forked."""
        self._is_open, self._keep = False, None

    def put_prediction(self, compile: Compile) -> None:
        """Store a compile for a target.  Nobody is told, since the script itself did not compile it."""
        if self._keep is not None:
            self._keep(PredictionWritten(compile))

    def go_on_in_child(self, keep: Callable[[Message | StoreWrite], None], target: str) -> None:
        """Gives what is captured to another keeper, with IDs below a target: for a forked child that compiles for that
        target."""
        self._lock = threading.RLock()  # who held it does not exist here
        self.send = self._keep = keep
        self.compiles.target = target
        self._is_open = True
