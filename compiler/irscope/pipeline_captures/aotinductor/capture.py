"""What is captured of AOTInductor: the exported program, and all that Inductor makes of it down to the package."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import Any

from irscope.capture.lanes import hooks_for
from irscope.capture.programs import NotLoweredError, Program
from irscope.capture.progress import ProgressTeller
from irscope.capture.run_book import RunBook
from irscope.capture.stages import clean
from irscope.events.listening import LogHandler
from irscope.events.trace import Record, TraceHandler
from irscope.findings import signals
from irscope.findings.kinds import compile_error
from irscope.internals import unread
from irscope.internals.aot_inductor import compile_package, load_package
from irscope.internals.hooks import Hook
from irscope.ir.cpp_wrapper import kernels_of
from irscope.ir.kernels import KernelSource, kernels_in
from irscope.pipeline_captures.aotinductor.package import beside_the_cpu, contents_of, contents_text, unlike
from irscope.pipeline_captures.export.capture import ExportCapture
from irscope.pipeline_captures.export.in_place import InPlace, unfit
from irscope.pipeline_captures.export.programs import decomposed
from irscope.pipeline_captures.inductor import trace
from irscope.pipeline_captures.inductor.deep_lane import DeepLane
from irscope.pipeline_captures.inductor.fusion import FusionLog
from irscope.pipeline_captures.inductor.kernels import Kernels
from irscope.pipeline_captures.inductor.triton_stages import TritonStages
from irscope.pipelines.aotinductor.stages import PACKAGE, TUNING, WRAPPER
from irscope.pipelines.inductor.stages import INFERENCE_GRAPH, POST_GRAD_GRAPH
from irscope.protocol import CaptureGap, Compile
from irscope.system.commands import temporary_folder
from irscope.vocabulary.stages import StageKind

_WRAPPER, _KERNELS = "inductor_aot_wrapper_code", "inductor_aot_kernel_code"
_TUNING = "inductor_autotune_at_compile_time_code"
_STAGES = {name: kind for name, kind in trace.EVENTS.items() if kind in (INFERENCE_GRAPH, POST_GRAD_GRAPH)}
_PHASES = {
    "aot_inference_graph": "lowering program {}",
    "inductor_post_grad_graph": "generating the kernels of program {}",
    _TUNING: "tuning the kernels of program {}",
    _WRAPPER: "compiling the package of program {}",
}


class AotInductorCapture(ExportCapture):
    """In the fast lane only what ``torch.export`` gives: to compile a package takes half a minute."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._kernels = Kernels(book)
        self._triton = TritonStages(book, self._kernels)
        self._lane = DeepLane(book, None, self._fused) if book.is_deep else None
        self._progress = ProgressTeller(book.send, _PHASES)
        self._trace = TraceHandler(book.guarded(self._receive))
        self._tuned: list[KernelSource] = []  # the Triton kernels of the program that is being compiled
        self._wrapper = ("", "")  # the id of the newest wrapper's stage, and its text
        self._operators: dict[str, str] = {}  # function of the C++ interface → the operator that it computes
        self._compile: Compile | None = None

    def hooks(self) -> list[Hook]:
        """What is patched in PyTorch: in the fast lane only what export needs."""
        if self._lane is None:
            return super().hooks()
        return [
            *super().hooks(),
            *hooks_for(self.book.request),
            unread.hook(TraceHandler),
            *self._lane.hooks(),
            *self._triton.hooks(),
        ]

    def finish(self) -> None:
        """Writes the Triton kernels of which no configuration was chosen."""
        super().finish()
        self._triton.finish()

    def handlers(self) -> list[LogHandler]:
        """What listens to PyTorch's trace."""
        return [] if self._lane is None else [self._trace]

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Exports a program and, in the deep lane, compiles it into a package."""
        exported = self.export(program, args, kwargs, compile)
        made, core = exported.program, None
        with contextlib.suppress(Exception):  # it is looked at only for what it changes
            core = decomposed(made)
        reason = unfit(core, exported.printed) or unlike(made)
        if device := beside_the_cpu(made):
            # To load a package for CUDA has killed a process (torch 2.11 on an H200, without irscope).
            reason = reason or f"it uses {device}, and irscope loads packages for the CPU only"
        self.put_facts(made, reason, compile)
        if self._lane is None:
            return program if reason else InPlace(program, made.module(), made, args, kwargs)
        loaded = self._packaged(made, compile, is_loaded=not reason)
        return program if loaded is None else InPlace(program, loaded, made, args, kwargs)

    def _packaged(self, made: Any, compile: Compile, is_loaded: bool) -> Program | None:
        """Compiles an exported program into a package and, if asked for, loads it.  Raises NotLoweredError after it has
        said why that failed."""
        with temporary_folder() as folder:
            path = os.path.join(folder, "model.pt2")
            self._compile, self._tuned = compile, []
            try:
                with self.book.compiling(compile.id):
                    compile_package(made, path)
            except Exception as error:
                self.book.findings.add(compile_error.of_program(error, compile))
                raise NotLoweredError from error
            self.book.put_stage(compile.id, PACKAGE.name, contents_text(contents_of(path)))
            loaded: Program | None = load_package(path) if is_loaded else None
            return loaded

    # --- the trace ----------------------------------------------------------------------------------------------------

    def _receive(self, record: Record) -> None:
        """PyTorch's records have no compile here; they belong to the one that is going on in this thread."""
        name, lane = self.book.current_compile("trace"), self._lane
        if name is None or lane is None:
            return
        event = str(record.facts.get("name")) if record.event == "graph_dump" else record.event
        record = dataclasses.replace(record, compile=name, event=event)
        if self._compile is not None:
            self._progress.phase(event, self._compile)
        if event == _WRAPPER:
            self._wrapper = (self._put(lane, record, name, WRAPPER), clean(record))
        elif event == _TUNING:
            self._tune(record, name)
        elif event == _KERNELS:
            id, text = self._wrapper
            kernels = kernels_of(text, record.payload, self._tuned)
            self._kernels.written(name, id, text, False, kernels, WRAPPER)
            if any(kernel.name.startswith("triton_") and not kernel.text for kernel in kernels):
                self.book.gap(CaptureGap("Triton kernels of the package", "Inductor did not tune them at compile time"))
        elif (kind := _STAGES.get(event)) is not None:
            self._put(lane, record, name, kind)
        elif not lane.note(record, name) and event == trace.KERNEL_STACKS:
            linked = self._kernels.link(name, record.payload)
            named = [dataclasses.replace(one, name=self._operators.get(one.name, one.name)) for one in linked]
            self.book.findings.signal(signals.KERNELS_LINKED, name, named)

    def _put(self, lane: DeepLane, record: Record, compile: str, kind: StageKind) -> str:
        text, data = clean(record), lane.data_of(record, compile, kind, False)
        id = self.book.put_stage(compile, kind.name, text, 0, data)
        lane.stage_written(compile, kind, id, False, 0, data)
        if kind is WRAPPER and data is not None:
            self._operators = {call["kernel"]: call["operator"] for call in data["calls"] if "operator" in call}
        return id

    def _tune(self, record: Record, compile: str) -> None:
        """Inductor is about to run code that compiles and tunes each Triton kernel, before it writes the wrapper."""
        text = clean(record)
        self._tuned = [kernel for kernel in kernels_in(text) if kernel.text]
        id = self.book.put_stage(compile, TUNING.name, text)
        self._kernels.written(compile, id, text, False, self._tuned, TUNING)

    def _fused(self, log: FusionLog) -> None:
        self.book.findings.signal(signals.FUSED, self.book.current_compile("fusion"), log)
