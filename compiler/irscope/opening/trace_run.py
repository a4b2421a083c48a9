"""A run of the store from a trace: its records go to the very readers that listen while a script runs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.events import stack
from irscope.events.trace import RECOMPILATION, Record, TraceHandler, parse_record
from irscope.opening.index import TraceIndex
from irscope.opening.logs import Log, log_in, open_log
from irscope.opening.moments import Moments
from irscope.opening.paths import Paths, Roots
from irscope.opening.pieces import Pieces
from irscope.opening.records import RawRecord, read_records
from irscope.opening.warnings import TraceError, Warnings
from irscope.pipeline_captures.inductor.capture import InductorCapture
from irscope.pipelines import dynamo_stages
from irscope.protocol import (
    CaptureGap,
    GapSeen,
    Lane,
    Message,
    Outcome,
    OutcomeKind,
    RunRequest,
    StoreWrite,
)
from irscope.provenance.kernel_paths import keep_paths
from irscope.provenance.kernels import add_missing_origins
from irscope.store.run_writer import RunWriter
from irscope.store.store import Store
from irscope.usercode.source import digest_of, line_text, read_source
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.lanes import DEFAULT_PIPELINE
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.visible import bounded

ENTRY = "trace"
"""What `Store.how_run` has as the entry of such a run."""
_BATCH = 2000
"""Records that are written to the store at once."""
_NOT_HERE = CaptureGap(
    "what a trace does not have: columns, facts of nodes, Inductor's IR, fusion decisions, Triton's stages, the steps of Dynamo",
    "PyTorch does not write them into its structured trace. irscope run has them.",
)
_OF_EVENT = "part of the event"


@dataclass(frozen=True)
class TraceSpec:
    """What to open.

    Args:
        path: A log, a folder or an archive.
        roots: Where sources are.
        log: A part of the name of the log to take, if there are several.
        strict: Whether the first thing that is wrong is an error.
        compile, index: Only this compile, which is found by the index in this folder; empty: the whole log.
        world, rank: For a job whose other ranks are in logs beside this one: how many ranks it has, and which of them
            this is.
    """

    path: str
    roots: Roots
    log: str = ""
    strict: bool = False
    compile: str = ""
    index: str = ""
    world: int = 0
    rank: int = 0


@contextlib.contextmanager
def _log_of(spec: TraceSpec, warnings: Warnings) -> Iterator[Log]:
    if not spec.compile:
        with open_log(spec.path, spec.log, warnings) as log:
            yield log
        return
    with TraceIndex(log_in(spec.path, spec.log), spec.index) as index:
        index.update()
        with index.log_of(spec.compile) as log:
            yield log


def open_trace(spec: TraceSpec, store: Store, on_message: Callable[[Message], None] = lambda message: None) -> str:
    """Like `open_rank`; returns the run's id alone."""
    return open_rank(spec, store, on_message)[0]


def open_rank(
    spec: TraceSpec, store: Store, on_message: Callable[[Message], None] = lambda message: None
) -> tuple[str, int | None]:
    """Writes a trace into the store as a run; returns the run's id, and which rank of a job wrote it: None if no job was
    initialized.

    Raises:
        TraceError: It is not a trace, or something is wrong and ``spec.strict``.  Nothing is left in the store.
        OSError: It cannot be read.
    """
    warnings = Warnings(spec.strict)
    with _log_of(spec, warnings) as log:
        how: dict[str, object] = {"world": spec.world, "rank": spec.rank} if spec.world else {}
        with new_run(spec.path, store, how) as run:
            reading = Reading(run, store, Paths(spec.roots), warnings, on_message)
            reading.take_all(read_records(log, warnings))
            if not reading.seen:
                raise TraceError(f"{spec.path} has no record of PyTorch's structured trace that can be read.")
            if log.others and not spec.world:
                others = f"Name one to open it (--log NAME): {listed(log.others)}."
                reading.book.gap(CaptureGap("other logs beside this one", others))
            reading.end(_NOT_HERE)
    return run, reading.rank


@contextlib.contextmanager
def new_run(
    path: str, store: Store, how: Mapping[str, object], pipeline: str = DEFAULT_PIPELINE, what: str = "trace"
) -> Iterator[str]:
    """A run that is made of what is at a path, of which nothing is left in the store if that fails."""
    started, path = time.monotonic(), bounded(os.path.abspath(path))
    how = {"entry": ENTRY, "target": path, "cwd": os.getcwd(), "variables": [], **how}
    run = store.create_run(path, (), Lane.DEEP, "", how, pipeline, is_made=False)
    try:
        yield run
        seconds = round(time.monotonic() - started, 3)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, None, f"The {what} was read to its end.", seconds))
        store.make_newest(run)
    except BaseException:
        store.delete(run)
        raise


class Reading:
    """Feeds the records of one log."""

    def __init__(
        self, run: str, store: Store, paths: Paths, warnings: Warnings, on_message: Callable[[Message], None]
    ) -> None:
        self._run, self._store, self._paths, self._warnings, self._on_message = run, store, paths, warnings, on_message
        request = RunRequest(run=run, script="", args=(), lane=Lane.DEEP, store=store.path, symbolic_trace=False)
        self._writer = RunWriter(store, run, self._warn_of)
        self.book = RunBook(request, self._send, self._keep)
        self._capture = _TraceCapture(self.book)
        self._handler = next(one for one in self._capture.handlers() if isinstance(one, TraceHandler))
        self._moments, self._pieces = Moments(), Pieces()
        self._held: tuple[RawRecord, Record] | None = None
        self._script, self._torch = "", "unknown"  # 2.9 does not write its version into a trace
        self._other_text: set[str] = set()
        self.seen = 0
        self.rank: int | None = None

    def _send(self, message: Message) -> None:
        if isinstance(message, GapSeen) and message.gap.what.startswith(_OF_EVENT):
            self._warnings.add(f"{message.gap.what} is not as expected", message.gap.why)
        self._keep(message)
        self._on_message(message)

    def _keep(self, message: Message | StoreWrite) -> None:
        self._writer.put([message])

    def _warn_of(self, gap: CaptureGap) -> None:
        self._on_message(GapSeen(gap))

    def take_all(self, records: Iterator[RawRecord]) -> None:
        """All records of a log."""
        more = True
        while more:
            with self._store.transaction():
                more = False
                for _ in range(_BATCH):
                    raw = next(records, None)
                    if raw is None:
                        break
                    more = True
                    self._take(raw)
        if self._held is not None:
            self._hand_over(*self._held)

    def _take(self, raw: RawRecord) -> None:
        try:
            record = parse_record(raw.metadata, raw.payload)
        except (ValueError, TypeError, OverflowError):
            record = None
        if record is None:
            self._warnings.add("a record names no event", f"record {self.seen + 1}")
            return
        self.seen += 1
        if self.rank is None and type(rank := raw.metadata.get("rank")) is int:
            self.rank = rank
        self._pieces.take(record, raw.time)
        if record.event == "str":
            raw = self._string(raw, record)
        elif record.event == "torch_version":
            self._version(record.payload)
        elif record.event == "dynamo_start":
            raw = self._begins(raw, record)
        elif record.event == "compilation_metrics" and isinstance(record.facts.get("co_filename"), str):
            raw.metadata["compilation_metrics"]["co_filename"] = self._paths.local(record.facts["co_filename"])
        held, self._held = self._held, None
        if held is not None:  # why a recompilation begins is told before the stack of its call
            self._hand_over(*held)
        if record.event == RECOMPILATION:
            self._held = raw, record
        else:
            self._hand_over(raw, record)

    def _hand_over(self, raw: RawRecord, record: Record) -> None:
        if record.event == "chromium_event":
            payload, moment = raw.payload, stack.Told()
        else:
            payload = self._paths.in_text(raw.payload)
            moment = self._moments.of(dataclasses.replace(record, payload=payload))
        line: Any = logging.makeLogRecord({"metadata": raw.metadata, "payload": payload, "thread": raw.thread})
        with stack.at(moment):
            self._handler.emit(line)

    def _string(self, raw: RawRecord, record: Record) -> RawRecord:
        text, index = record.facts.get("text"), record.facts.get("index")
        local = self._paths.local(text) if isinstance(text, str) else ""
        self._moments.files[index if isinstance(index, int) else None] = local
        return RawRecord({**raw.metadata, "str": [local, index]}, raw.payload, raw.thread)

    def _version(self, payload: str) -> None:
        try:
            version = json.loads(payload)
        except (ValueError, RecursionError):
            return
        version = version.get("pytorch_version") if isinstance(version, dict) else version
        if isinstance(version, str):
            self._torch = version[:80]

    def _begins(self, raw: RawRecord, record: Record) -> RawRecord:
        frames = self._moments.frames(record.facts.get("stack"))
        for frame in frames:
            self._check(frame)
            if frame["name"] == "<module>" and not self._script and is_user_file(frame["filename"]):
                self._script = frame["filename"]
        if not self._script and frames and is_user_file(frames[-1]["filename"]):
            self._script = frames[-1]["filename"]
        if record.compile is not None:
            self._moments.begins(record.compile, frames)
        return RawRecord({**raw.metadata, "dynamo_start": {"stack": frames or [{}]}}, raw.payload, raw.thread)

    def _check(self, frame: dict[str, Any]) -> None:
        """Whether a file is still the one that ran, as far as its traced lines show that."""
        file = frame["filename"]
        if frame["loc"] and is_user_file(file) and read_source(file):
            here = line_text(file, frame["line"]).strip()
            if here != frame["loc"].split("\n")[0].strip():
                self._other_text.add(file)

    def end(self, not_here: CaptureGap) -> None:
        """All has been read; ``not_here`` is what it never has."""
        book = self.book
        for gap in self._warnings.gaps():
            book.gap(gap)
        if self._other_text:
            book.gap(CaptureGap("the lines of files that had another text then", listed(sorted(self._other_text))))
        for path, candidates in list(self._paths.ambiguous.items())[:20]:
            book.gap(
                CaptureGap(
                    f"the text of {path}: several files may be it",
                    f"{listed(candidates)}. Name the folder (--source-root).",
                )
            )
        book.gap(not_here)
        book.close()
        self._store.set_torch(self._run, self._torch)
        if pieces := self._pieces.folded():
            self._store.put_pieces(self._run, pieces)
        add_missing_origins(self._store, self._run)
        keep_paths(self._store, self._run)
        if self._script and (text := read_source(self._script)):
            self._store.set_script(self._run, self._script, digest_of(text))


class _TraceCapture(InductorCapture):
    """What a trace has beside what is captured live: the bytecode that Dynamo made, as text."""

    def note(self, record: Record, compile: str) -> None:
        """Takes in a record that carries no stage."""
        for end, kind in _BYTECODE.items():
            if record.event.endswith(end) and record.payload:
                self.book.put_stage(compile, kind.name, record.payload, record.attempt)
                return
        super().note(record, compile)


_BYTECODE = {"_ORIGINAL_BYTECODE": dynamo_stages.BYTECODE, "_MODIFIED_BYTECODE": dynamo_stages.MODIFIED_BYTECODE}
