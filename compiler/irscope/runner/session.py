"""The capture of one run: receives PyTorch's trace and writes what it means to the store and the pipe."""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import json
import os
import sqlite3
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from irscope import ownkernels
from irscope.capture import fusion, guardcosts, inlined, kernelprogress, ownframes, unread
from irscope.capture.hooks import Hook, Hooks, Undo
from irscope.capture.lanes import hooks_for
from irscope.capture.listening import listen
from irscope.capture.stages import KINDS, clean, is_backward, position, stage_of
from irscope.capture.trace import Record, TraceHandler
from irscope.findings import cache_miss, missed_fusion
from irscope.findings.cudagraph_skip import SkipHandler
from irscope.findings.performance_hint import HintHandler
from irscope.findings.recompile_limit import LimitHandler
from irscope.graphs import Graph, parse_graph
from irscope.kernels import kernels_in, origins_from_comments, origins_from_stacks
from irscope.protocol import (
    CaptureGap,
    Compile,
    CompileSeen,
    Finding,
    FindingSeen,
    GapSeen,
    Kernel,
    Lane,
    Origin,
    RunRequest,
    ScriptEnded,
    StageRef,
)
from irscope.runner import entries
from irscope.runner.cachekeys import STAGE, EarlierKeys, data_of, key_of, text_of
from irscope.runner.compiles import CompileBook
from irscope.runner.deeplane import DeepLane, Desk
from irscope.runner.descriptors import high_numbers
from irscope.runner.findings import FindingBook
from irscope.runner.messages import MessagePipe
from irscope.runner.progress import ProgressTeller
from irscope.runner.runstore import RunStore
from irscope.runner.steady import SteadyState
from irscope.runner.timing import PhaseStages, SymbolStages
from irscope.runner.tritonstages import TritonStages
from irscope.runner.valuerun import ValueRun
from irscope.runner.walks import Walks
from irscope.source import digest_of, read_source
from irscope.store import Store, StoreError
from irscope.usercode import is_user_file

_KERNEL_STACKS = "inductor_provenance_tracking_kernel_stack_traces"


class Session:
    """Captures from `start` to `finish`.

    Whatever goes wrong inside becomes a capture gap; nothing reaches the script.  A forked child captures nothing.
    """

    def __init__(self, request: RunRequest, messages: MessagePipe, torch: str) -> None:
        self._request, self._messages, self._torch = request, messages, torch
        self._lock = threading.RLock()
        self._alive = True
        self._store: Store | None = None
        self._stage_ids: dict[str, str] = {}  # stage id → the compile attempt that wrote it
        self._graphs: dict[str, str] = {}  # compile → text of its dynamo graph, until it is read
        self._read_graphs: dict[str, Graph | None] = {}
        self._kernels: dict[tuple[str, bool], list[Kernel]] = {}  # (compile, backward) → its kernels
        self._output_code: dict[
            str, tuple[bool, str]
        ] = {}  # compile → its newest output code, and if it is the backward's
        self._earlier_keys: EarlierKeys | None = None  # of the FX graph cache
        self._sources: set[str] = set()  # files whose text is in the store
        self._gaps: set[CaptureGap] = set()
        self._compiles = CompileBook()
        self._findings = FindingBook(self._compiles, self._publish)
        self._progress = ProgressTeller(messages.send)
        self._symbols = SymbolStages(self._write_stage)
        self._phases = PhaseStages(self._compiles.name_of, self._write_stage)
        timing = self._guarded(self._phases.note) if request.lane is Lane.DEEP else None
        self._trace = TraceHandler(self._guarded(self._receive), timing)
        self._limit = LimitHandler(self._guarded(self._findings.limit_reached))
        self._skips = SkipHandler(self._guarded(self._cudagraph_skipped))
        self._stop_listening: list[Undo] = []
        self._hints = HintHandler(self._guarded(self._hinted))
        hooks = [
            *hooks_for(request.lane),
            ownframes.hook(),
            self._bytecode_hook(),
            *self._findings.hooks(self._guarded),
            self._hints_hook(),
            unread.hook(),
        ]
        if request.lane is Lane.DEEP:
            hooks.append(kernelprogress.hook(self._guarded(self._kernels_compiled)))
        self._values = self._value_run(request)
        self._deep_lane = self._deep_lane_of(request.lane)
        hooks += self._deep_lane.hooks() if self._deep_lane else fusion.hooks(self._guarded(self._fused))
        self._steady = SteadyState(request.steady_calls or 0, messages.send)
        hooks += [*entries.hooks_for(request), *([self._steady.hook()] if request.steady_calls else [])]
        self._triton = TritonStages(
            self._put_compile, self._write_stage, self._put_kernel, self._kernel_named, self._gap
        )
        hooks += self._triton.hooks(request.lane, self._guarded)
        self._walks = Walks(request, self._current_compile, self._write_stage, self._gap, self._guarded)
        hooks += self._walks.hooks()
        hooks += self._values.hooks() if self._values else []
        self._hooks = Hooks(hooks, self._gap)

    def start(self) -> None:
        try:
            with high_numbers():
                self._store = RunStore(self._request.store, self._not_kept)
            self._store.set_torch(self._request.run, self._torch)
            self._earlier_keys = EarlierKeys(self._store, self._request.run, self._request.script)
        except (StoreError, OSError, sqlite3.Error) as error:
            self._gap(CaptureGap("the run store: nothing of this run is kept", str(error)))
        self._stop_listening = [listen(handler, handler.LOGGER) for handler in (self._trace, self._limit, self._skips)]
        self._hooks.__enter__()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    def script_ended(self, exit_code: int, error: str) -> None:
        if self._alive:
            self._messages.send(ScriptEnded(exit_code, error))

    def finish(self) -> None:
        """Undoes everything that `start` did."""
        if not self._alive:
            return
        with self._lock:
            for stop in self._stop_listening:
                stop()
            self._hooks.__exit__()
            self._guarded(self._keep_files)()
            if self._store is not None:
                self._store.close()
                self._store = None

    def _keep_files(self) -> None:
        """Which of the user's files the run had, for who wants to run it again (`Store.how_run`)."""
        if self._store is not None:
            with contextlib.suppress(LookupError):  # the run was deleted meanwhile
                self._store.put_files(self._request.run, _files_of_the_user())

    def _in_child(self) -> None:
        self._alive = False
        self._messages.close()
        if self._store is not None:
            self._store.abandon()
            self._store = None

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _guarded(self, receive: Callable[..., None]) -> Callable[..., None]:
        """Whatever `receive` raises is a gap; it is called by one thread at a time, and never from inside itself."""

        def guarded(*args: object) -> None:
            if not self._alive or (self._values is not None and self._values.is_at_work):
                return
            with self._lock:
                try:
                    receive(*args)
                except Exception as error:  # noqa: BLE001  a capture never fails as a whole (DESIGN.md, invariant 7)
                    what = f"part of the event {args[0].event}" if args and isinstance(args[0], Record) else "an event"
                    self._gap(CaptureGap(what, f"{type(error).__name__}: {error}"))

        return guarded

    def _receive(self, record: Record) -> None:
        name = self._compiles.name_of(record)
        record = dataclasses.replace(record, compile=name)
        self._symbols.note(record)
        if name is None:
            return
        self._walks.note(record)
        if record.event == "compilation_metrics":
            self._phases.metrics(record)
        code = _code_being_compiled() if record.event == "dynamo_start" else None
        changed = self._compiles.note(record, name, code)
        if changed is not None:
            self._put_compile(changed)
        if (going_on := self._compiles.get(name)) is not None:
            self._progress.phase(record.event, going_on)
        self._findings.note(record)
        if record.event == "dynamo_error" and (failed := self._compiles.get(name)):
            self._put_compile(failed)
        if code is not None and record.attempt == 0:
            self._put_stage(name, "bytecode", _disassemble(code), 0)
        if (kind := stage_of(record)) is not None:
            costs = guardcosts.measure() if kind.name == "guards" and self._request.lane is Lane.DEEP else None
            self._put_stage_of(record, name, kind.name, costs)
        elif self._deep_lane is not None and self._deep_lane.note(record, name):
            pass
        elif record.event == _KERNEL_STACKS:
            self._link_kernels(name, record.payload)
        elif record.event == cache_miss.EVENT:
            self._cache_missed(name, record)
        elif record.event == "fx_graph_cache_hit":
            self._gap(
                CaptureGap(
                    f"the stages of {name} behind the post-grad graph",
                    "the script's settings let the FX graph cache answer",
                )
            )

    # --- writing ------------------------------------------------------------------------------------------------------

    def _put_compile(self, compile: Compile) -> None:
        if self._store is not None:
            self._store.put_compile(self._request.run, compile)
            self._keep_source(compile.file)
        self._messages.send(CompileSeen(compile))
        self._steady.compile_changed(compile)

    def _keep_source(self, file: str) -> None:
        """The text that a file has in this run; what it is later may be another."""
        if self._store is not None and file not in self._sources:
            self._sources.add(file)
            if text := read_source(file):
                self._store.put_source(self._request.run, file, text)

    def _put_stage_of(self, record: Record, compile: str, name: str, data: object) -> None:
        text = clean(record)
        backward = is_backward(name, text)
        if self._deep_lane is not None and data is None:
            data = self._deep_lane.data_of(record, compile, name, backward)
        id = self._put_stage(compile, name, text, record.attempt, data, backward)
        if self._deep_lane is not None:
            self._deep_lane.stage_written(compile, name, id, backward, record.attempt, data)

    def _put_stage(
        self, compile: str, name: str, text: str, attempt: int, data: object = None, backward: bool | None = None
    ) -> str:
        """Returns the id of the stage.  Whether it is the backward's is told by its text where it is not given."""
        backward = is_backward(name, text) if backward is None else backward
        id = self._new_stage_id(f"{compile}/{name}{'-backward' if backward else ''}", attempt)
        stage = StageRef(id, name, KINDS[name].language, len(text))
        self._write_stage(compile, stage, text, position(name, backward), data)
        if name == "dynamo-graph":
            self._graphs[compile] = text
            self._read_graphs.pop(compile, None)
        elif name == "output-code":
            self._put_kernels(compile, id, text, backward)
        return id

    def _write_stage(self, compile: str, stage: StageRef, text: str | None, order: float, data: object = None) -> None:
        if self._store is not None:
            self._store.put_stage(self._request.run, compile, stage, text, order, data)

    def _cache_missed(self, name: str, record: Record) -> None:
        """Keeps the key of a graph in the FX graph cache; what made it another one is a finding."""
        compile, facts = self._compiles.get(name), json.loads(record.payload)
        if compile is None or self._store is None or self._earlier_keys is None or not facts.get("components"):
            return
        key = key_of(compile, cache_miss.parts_of(facts["components"]))
        text, arguments = text_of(key), cache_miss.arguments_of(self._dynamo_graph(name), key)
        backward = is_backward(STAGE, text)
        id = self._new_stage_id(f"{name}/{STAGE}{'-backward' if backward else ''}", record.attempt)
        stage = StageRef(id, STAGE, KINDS[STAGE].language, len(text))
        self._write_stage(name, stage, text, position(STAGE, backward), data_of(key))
        earlier = self._earlier_keys.of(key, compile, self._compiles.number_of(compile), id.rpartition("/")[2])
        self._findings.cache_missed(record, key, earlier, arguments)

    def _new_stage_id(self, base: str, attempt: int) -> str:
        """A restarted compile writes its stages again, over the old ones; a second graph in one attempt gets a number."""
        id, number = base, 1
        while self._stage_ids.get(id) == str(attempt):
            number += 1
            id = f"{base}-{number}"
        self._stage_ids[id] = str(attempt)
        return id

    def _put_kernels(self, compile: str, output_code: str, text: str, backward: bool) -> None:
        origins = origins_from_comments(text, self._dynamo_graph(compile))
        kernels = []
        suffix = output_code.rpartition("output-code")[2]
        written = ownkernels.written_in(text)
        for source in kernels_in(text):
            stage = output_code
            if source.text:
                stage = f"{compile}/kernel{suffix}/{source.name}"
                ref = StageRef(stage, "kernel", source.language, len(source.text))
                data = None
                if (home := written.get(source.name)) is not None:
                    data = ownkernels.data_of(source.text, home, read_source(home.file))
                    self._keep_source(home.file)
                self._write_stage(compile, ref, source.text, position("kernel", backward), data)
            kernels.append(Kernel(source.name, source.language, compile, stage, origins.get(source.name, ())))
        self._output_code[compile] = (backward, text)
        self._kernels[compile, backward] = kernels
        self._write_kernels(kernels)
        self._triton.written(kernels, text)

    def _link_kernels(self, compile: str, payload: str) -> None:
        backward, text = self._output_code.get(compile, (False, ""))
        key = (compile, backward)
        origins: dict[str, tuple[Origin, ...]] = origins_from_stacks(payload, text)
        linked = [dataclasses.replace(k, origins=origins.get(k.name) or k.origins) for k in self._kernels.get(key, [])]
        self._kernels[key] = linked
        self._write_kernels(linked)
        self._findings.kernels_linked(compile, linked)

    def _kernel_named(self, name: str) -> tuple[Kernel, str] | None:
        """A kernel of the newest output code of the compile that is going on, with that output code."""
        compile = self._current_compile("triton") or ""
        backward, text = self._output_code.get(compile, (False, ""))
        kernels = self._kernels.get((compile, backward), [])
        return next(((kernel, text) for kernel in kernels if kernel.name == name), None)

    def _put_kernel(self, kernel: Kernel) -> None:
        self._write_kernels([kernel])

    def _write_kernels(self, kernels: list[Kernel]) -> None:
        if self._store is not None:
            with self._store.transaction():
                for kernel in kernels:
                    self._store.put_kernel(self._request.run, kernel)
            for file in dict.fromkeys(origin.file for kernel in kernels for origin in kernel.origins):
                self._keep_source(file)  # also of a package: who opens a file of a model's asks for its kernels

    def _dynamo_graph(self, compile: str) -> Graph | None:
        if compile not in self._read_graphs:
            try:
                self._read_graphs[compile] = parse_graph(self._graphs.pop(compile, ""))
            except ValueError:
                self._read_graphs[compile] = None
        return self._read_graphs[compile]

    def _publish(self, finding: Finding) -> None:
        if self._store is not None:
            self._store.put_finding(self._request.run, finding)
            self._keep_source(finding.file)
        self._messages.send(FindingSeen(finding))
        self._steady.found(finding)

    def left_out(self, package: str) -> None:
        """A package that a notebook's cell imports is not there, and something that does nothing stands in for it."""
        why = f"{package} is not installed in {sys.executable}. Install it there if what is compiled depends on it."
        self._gap(CaptureGap(f"what the cells do with {package}: it is left out", why))

    def _gap(self, gap: CaptureGap) -> None:
        if gap in self._gaps or not self._alive:
            return
        self._gaps.add(gap)
        self._messages.send(GapSeen(gap))
        if self._store is not None:
            self._store.put_gap(self._request.run, gap)

    def _not_kept(self, error: sqlite3.Error) -> None:
        self._gap(CaptureGap("the run store: a part of this run is not kept", f"{self._request.store}: {error}"))

    def _kernels_compiled(self, done: int, total: int) -> None:
        name = self._current_compile("progress")
        if name is not None and (compile := self._compiles.get(name)) is not None:
            backward, _ = self._output_code.get(name, (False, ""))
            known = sum(kernel.language != "extern" for kernel in self._kernels.get((name, backward), ()))
            self._progress.kernels(compile, done, total or known)

    # --- hints --------------------------------------------------------------------------------------------------------

    def _hints_hook(self) -> Hook:
        # Only after torch has configured its loggers: it resets their levels while it is imported.
        return Hook(
            "Inductor's performance hints", "torch._inductor.graph", "2.9 to 2.13", lambda _: self._hints.attach()
        )

    def _fused(self, log: fusion.FusionLog) -> None:
        self._findings.fusion_refused(self._current_compile("fusion"), missed_fusion.refusals_of(log))

    def _cudagraph_skipped(self, reason: str) -> None:
        self._findings.cudagraph_skipped(self._current_compile("cudagraph_skip"), reason)

    def _hinted(self, text: str) -> None:
        self._findings.hinted(self._current_compile("perf_hint"), text)

    # --- the way down -------------------------------------------------------------------------------------------------

    def _deep_lane_of(self, lane: Lane) -> DeepLane | None:
        if lane is not Lane.DEEP:
            return None
        return DeepLane(
            Desk(
                self._current,
                self._put_stage,
                self._write_stage,
                self._put_data,
                self._fused,
                self._gap,
                self._guarded,
                self._values.graph if self._values else None,
                self._values.version if self._values else None,
            )
        )

    def _value_run(self, request: RunRequest) -> ValueRun | None:
        if request.values is None or request.lane is not Lane.DEEP:
            return None
        return ValueRun(request, self._current_compile, self._write_stage, self._publish, self._gap, self._guarded)

    def _put_data(self, stage: str, data: object) -> None:
        if self._store is not None:
            self._store.put_stage_data(self._request.run, stage, data)

    # --- bytecode -----------------------------------------------------------------------------------------------------

    def _bytecode_hook(self) -> Hook:
        def apply(convert_frame: types.ModuleType) -> Undo:
            handle: Any = convert_frame.register_bytecode_hook(self._guarded(self._see_bytecode))
            return handle.remove  # type: ignore[no-any-return]

        return Hook("the modified bytecode", "torch._dynamo.convert_frame", "2.13", apply)

    def _see_bytecode(self, _original: types.CodeType, modified: types.CodeType) -> None:
        if (current := self._current()) is not None:
            data = {"functions": self._walked_through(current[0])}
            self._put_stage(current[0], "modified-bytecode", _disassemble(modified), current[1], data)

    def _walked_through(self, compile: str) -> list[tuple[str, int, str]]:
        """The functions that are compiled in a compile: file, first line, name."""
        try:
            functions = inlined.functions_of(inlined.traced_codes())
        except LookupError as error:
            self._gap(CaptureGap("functions that were inlined into compiled ones", str(error)))
            return []
        for file in dict.fromkeys(file for file, _, _ in functions):
            if is_user_file(file):
                self._keep_source(file)
        return functions

    def _current_compile(self, event: str) -> str | None:
        """The compile that is going on in this thread, by the name that it has in this run."""
        current = self._current(event)
        return current[0] if current is not None else None

    def _current(self, event: str = "stage") -> tuple[str, int] | None:
        """That compile, and how often it was restarted."""
        guards: Any = sys.modules["torch._guards"]
        trace_id = guards.CompileContext.current_trace_id()
        if trace_id is None:
            return None
        name = self._compiles.name_of(Record(event, {}, str(trace_id.compile_id), trace_id.attempt, ""))
        return None if name is None else (name, trace_id.attempt)


def _code_being_compiled() -> types.CodeType | None:
    """The argument ``code`` of ``_compile`` in convert_frame.py, on the stack at ``dynamo_start`` (torch 2.9 to 2.13)."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_compile" and frame.f_code.co_filename.endswith("convert_frame.py"):
            code = frame.f_locals.get("code")
            return code if isinstance(code, types.CodeType) else None
        frame = frame.f_back
    return None


def _disassemble(code: types.CodeType) -> str:
    return dis.Bytecode(code).dis()


_MOST_FILES = 2000
_GENERATED = "torch."
"""What the names of modules begin with that Inductor has written into its cache, which may be emptied."""


def _files_of_the_user() -> dict[str, str]:
    """The user's files that were imported, with digests of their texts."""
    paths = [
        vars(module).get("__file__")
        for name, module in list(sys.modules.items())
        # A script may put there what it likes, and asking such an object for an attribute can do anything.
        if issubclass(type(module), types.ModuleType) and not str(name).startswith(_GENERATED)
    ]
    mine = [path for path in paths if isinstance(path, str) and path.endswith(".py") and is_user_file(path)]
    return {path: digest_of(text) for path in mine[:_MOST_FILES] if (text := read_source(path))}
