"""The capture of one run: receives PyTorch's trace and writes what it means to the store and the pipe."""

from __future__ import annotations

import dataclasses
import dis
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook, Hooks, Undo
from irscope.capture.lanes import hooks_for
from irscope.capture.listening import listen
from irscope.capture.stack import plain_name
from irscope.capture.stages import KINDS, clean, is_backward, position, stage_of
from irscope.capture.trace import Record, TraceHandler
from irscope.findings import cache_miss, guard_failure, missed_fusion
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
    Origin,
    Progress,
    RunRequest,
    ScriptEnded,
    StageRef,
)
from irscope.runner.cachekeys import EarlierKeys, data_of, key_of, text_of
from irscope.runner.compiles import CompileBook
from irscope.runner.descriptors import high_numbers
from irscope.runner.findings import FindingBook
from irscope.runner.messages import MessagePipe
from irscope.source import read_source
from irscope.store import Store, StoreError

_KERNEL_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_PROGRESS = {
    "dynamo_start": "tracing",
    "dynamo_output_graph": "compiling the graph of",
    "aot_joint_graph": "partitioning",
    "inductor_post_grad_graph": "generating kernels of",
    "inductor_output_code": "compiling kernels of",
}


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
        self._graphs: dict[str, str] = {}  # compile → text of its dynamo graph
        self._kernels: dict[tuple[str, bool], list[Kernel]] = {}  # (compile, backward) → its kernels
        self._output_code: dict[
            str, tuple[bool, str]
        ] = {}  # compile → its newest output code, and if it is the backward's
        self._earlier_keys: EarlierKeys | None = None  # of the FX graph cache
        self._sources: set[str] = set()  # files whose text is in the store
        self._gaps: set[CaptureGap] = set()
        self._compiles = CompileBook()
        self._findings = FindingBook(self._compiles, self._publish)
        self._trace = TraceHandler(self._guarded(self._receive))
        self._limit = LimitHandler(self._guarded(self._findings.limit_reached))
        self._skips = SkipHandler(self._guarded(self._cudagraph_skipped))
        self._stop_listening: list[Undo] = []
        self._hints = HintHandler(self._guarded(self._hinted))
        forbidden = guard_failure.hook(self._guarded(self._findings.recompile_forbidden))
        refused = missed_fusion.hook(self._guarded(self._fusion_refused))
        hooks = [*hooks_for(request.lane), self._bytecode_hook(), forbidden, self._hints_hook(), refused]
        self._hooks = Hooks(hooks, self._gap)

    def start(self) -> None:
        try:
            with high_numbers():
                self._store = Store(self._request.store)
            self._store.set_torch(self._request.run, self._torch)
            self._earlier_keys = EarlierKeys(self._store, self._request.run, self._request.script)
        except (StoreError, OSError) as error:
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
            if self._store is not None:
                self._store.close()
                self._store = None

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
            if not self._alive:
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
        if name is None:
            return
        record = dataclasses.replace(record, compile=name)
        code = _code_being_compiled() if record.event == "dynamo_start" else None
        changed = self._compiles.note(record, name, code)
        if changed is not None:
            self._put_compile(changed)
        if record.event in _PROGRESS:
            self._progress(record)
        self._findings.note(record)
        if record.event == "dynamo_error" and (failed := self._compiles.get(name)):
            self._put_compile(failed)
        if code is not None and record.attempt == 0:
            self._put_stage(name, "bytecode", _disassemble(code), 0)
        if (kind := stage_of(record)) is not None:
            self._put_stage(name, kind.name, clean(record), record.attempt)
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

    def _keep_source(self, file: str) -> None:
        """The text that a file has in this run; what it is later may be another."""
        if self._store is not None and file not in self._sources:
            self._sources.add(file)
            if text := read_source(file):
                self._store.put_source(self._request.run, file, text)

    def _put_stage(self, compile: str, name: str, text: str, attempt: int) -> None:
        backward = is_backward(name, text)
        id = self._new_stage_id(f"{compile}/{name}{'-backward' if backward else ''}", attempt)
        self._write_stage(compile, StageRef(id, name, KINDS[name].language, len(text)), text, position(name, backward))
        if name == "dynamo-graph":
            self._graphs[compile] = text
        elif name == "output-code":
            self._put_kernels(compile, id, text, backward)

    def _write_stage(self, compile: str, stage: StageRef, text: str, order: int) -> None:
        if self._store is not None:
            self._store.put_stage(self._request.run, compile, stage, text, order)

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
        for source in kernels_in(text):
            stage = output_code
            if source.text:
                stage = f"{compile}/kernel{suffix}/{source.name}"
                ref = StageRef(stage, "kernel", source.language, len(source.text))
                self._write_stage(compile, ref, source.text, position("kernel", backward))
            kernels.append(Kernel(source.name, source.language, compile, stage, origins.get(source.name, ())))
        self._output_code[compile] = (backward, text)
        self._kernels[compile, backward] = kernels
        self._write_kernels(kernels)

    def _link_kernels(self, compile: str, payload: str) -> None:
        backward, text = self._output_code.get(compile, (False, ""))
        key = (compile, backward)
        origins: dict[str, tuple[Origin, ...]] = origins_from_stacks(payload, text)
        linked = [dataclasses.replace(k, origins=origins.get(k.name) or k.origins) for k in self._kernels.get(key, [])]
        self._kernels[key] = linked
        self._write_kernels(linked)
        self._findings.kernels_linked(compile, linked)

    def _write_kernels(self, kernels: list[Kernel]) -> None:
        if self._store is not None:
            with self._store.transaction():
                for kernel in kernels:
                    self._store.put_kernel(self._request.run, kernel)

    def _dynamo_graph(self, compile: str) -> Graph | None:
        try:
            return parse_graph(self._graphs.get(compile, ""))
        except ValueError:
            return None

    def _publish(self, finding: Finding) -> None:
        if self._store is not None:
            self._store.put_finding(self._request.run, finding)
            self._keep_source(finding.file)
        self._messages.send(FindingSeen(finding))

    def _gap(self, gap: CaptureGap) -> None:
        if gap in self._gaps or not self._alive:
            return
        self._gaps.add(gap)
        self._messages.send(GapSeen(gap))
        try:
            if self._store is not None:
                self._store.put_gap(self._request.run, gap)
        except Exception as error:  # noqa: BLE001  most likely the disk is full, which is a gap of its own
            self._store = None
            self._gap(CaptureGap("the run store: what came after this is not kept", str(error)))

    def _progress(self, record: Record) -> None:
        compile = self._compiles.get(record.compile)
        if compile is not None:
            where = f"{os.path.basename(compile.file)}:{compile.line}"
            self._messages.send(
                Progress(f"{_PROGRESS[record.event]} {plain_name(compile.function)} ({where}, {compile.id})")
            )

    # --- hints --------------------------------------------------------------------------------------------------------

    def _hints_hook(self) -> Hook:
        # Only after torch has configured its loggers: it resets their levels while it is imported.
        return Hook(
            "Inductor's performance hints", "torch._inductor.graph", "2.9 to 2.13", lambda _: self._hints.attach()
        )

    def _fusion_refused(self, refusals: list[missed_fusion.Refusal]) -> None:
        self._findings.fusion_refused(self._current_compile("fusion"), refusals)

    def _cudagraph_skipped(self, reason: str) -> None:
        self._findings.cudagraph_skipped(self._current_compile("cudagraph_skip"), reason)

    def _hinted(self, text: str) -> None:
        self._findings.hinted(self._current_compile("perf_hint"), text)

    # --- bytecode -----------------------------------------------------------------------------------------------------

    def _bytecode_hook(self) -> Hook:
        def apply(convert_frame: types.ModuleType) -> Undo:
            handle: Any = convert_frame.register_bytecode_hook(self._guarded(self._see_bytecode))
            return handle.remove  # type: ignore[no-any-return]

        return Hook("the modified bytecode", "torch._dynamo.convert_frame", "2.13", apply)

    def _see_bytecode(self, _original: types.CodeType, modified: types.CodeType) -> None:
        name = self._current_compile("modified-bytecode")
        if name is not None:
            guards: Any = sys.modules["torch._guards"]
            attempt = guards.CompileContext.current_trace_id().attempt
            self._put_stage(name, "modified-bytecode", _disassemble(modified), attempt)

    def _current_compile(self, event: str) -> str | None:
        """The compile that is going on in this thread, by the name that it has in this run."""
        guards: Any = sys.modules["torch._guards"]
        trace_id = guards.CompileContext.current_trace_id()
        if trace_id is None:
            return None
        return self._compiles.name_of(Record(event, {}, str(trace_id.compile_id), trace_id.attempt, ""))


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
