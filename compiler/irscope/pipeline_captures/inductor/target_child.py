"""What the forked child of a run does that compiles a program for a device which is not here.

It writes a file of JSON lines: what the capture of its compile sees, then ``codegen`` with how that ended, then for each
of Triton's kernels its stages below the source, and ``end``.  A child that is ended early leaves what it had.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.findings import signals
from irscope.findings.kinds.missed_fusion import refusals_of
from irscope.internals import cpu_stand_in, fake_run, restarts
from irscope.internals.device_stand_in import become, open_choices
from irscope.internals.size_guards import guards_on_sizes
from irscope.internals.target_cuda_graphs import decided
from irscope.internals.triton_compiling import NotCompiledError, compiled_kernel
from irscope.pipeline_captures.inductor import cuda_graphs
from irscope.pipeline_captures.inductor.kernel_resources import slow_kernel, spills_of
from irscope.pipeline_captures.inductor.kernels import Kernels
from irscope.pipeline_captures.inductor.missing_triton import why_missing
from irscope.pipeline_captures.inductor.target_choices import number_of
from irscope.pipeline_captures.inductor.triton import TritonKernel, files_in
from irscope.pipeline_captures.inductor.triton_stages import lowered_stages
from irscope.pipelines.dynamo_stages import GUARDS
from irscope.pipelines.inductor.stages import CUDA_GRAPHS, KERNEL
from irscope.protocol import (
    CaptureGap,
    DataWritten,
    GapSeen,
    Kernel,
    KernelsWritten,
    Message,
    StageWritten,
    StoreWrite,
    encode_message,
    to_json,
)
from irscope.targets.catalogue import CPU, Target
from irscope.targets.properties import properties_of
from irscope.vocabulary.units import count

_LOOK_SECONDS = 0.5
_OF_COMPILERS = ("torch.", "sympy.", "triton")
"""What the modules are called that the next child needs, too."""


class Rows:
    """Writes what the capture in a child sends into a file, as lines of JSON."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.kernels: dict[str, Kernel] = {}  # id of its stage → a kernel of Triton's
        self.texts: dict[str, str] = {}  # id → text of a kernel's stage

    def flush(self) -> None:
        """What was written so far is read even if the process is ended."""
        self._file.flush()

    def write(self, row: dict[str, Any]) -> None:
        """Write one line; the parent reads it at the end."""
        self._file.write(json.dumps(row).encode("utf-8", "surrogatepass") + b"\n")

    def keep(self, message: Message | StoreWrite) -> None:
        """Takes stages, kernels and gaps.  The parent knows the compile and its sources; findings are about its own run."""
        if isinstance(message, StageWritten) and message.stage.name == KERNEL.name and message.text:
            self.texts[message.stage.id] = message.text
        elif isinstance(message, KernelsWritten):
            for kernel in message.kernels:
                if kernel.language == "triton":
                    self.kernels.setdefault(kernel.stage, kernel)
        if isinstance(message, (StageWritten, DataWritten, KernelsWritten, GapSeen)):
            self.write(encode_message(message))

    def signal(self, name: str, compile: str | None, *data: Any, payload: str = "") -> None:
        """Takes what a schedule has kept apart; all other findings are about the parent's own run."""
        if name == signals.FUSED and (refusals := refusals_of(data[0])):
            self.write({"apart": to_json(refusals)})


def work(
    book: RunBook,
    kernels: Kernels,
    target: Target,
    compile: str,
    file: Any,
    compile_program: Callable[[], None],
    seconds: float | None,
) -> None:
    """All that the child does.

    Args:
        compile: The name of the script's own compile.
        file: Where the lines go; a binary file.
        compile_program: Compiles a copy of the program, once this process has become one with the device.
        seconds: How long kernels may be compiled; None: they are not wanted.
    """
    _be_quiet()
    started, imported = time.monotonic(), set(sys.modules)
    gc.freeze()  # what the script has is neither looked through nor copied for it
    rows, why, of_script = Rows(file), "", 0
    book.go_on_in_child(rows.keep, target.name)
    book.findings.signal = rows.signal  # type: ignore[method-assign]
    kernels.same_graph(f"{compile}/{target.name}", compile)
    fake_run.leave_in_child()
    try:
        if target.kind == CPU:
            cpu_stand_in.become(target.architecture)
        else:
            properties = properties_of(target)
            with contextlib.suppress(ImportError):  # then Inductor says at the first kernel what is missing
                _set_driver(target, properties)
            become(properties)
        with contextlib.suppress(Exception):  # then they are a gap below, and the kernels are there
            of_script = len(guards_on_sizes())
        compile_program()
    except BaseException as error:  # noqa: BLE001  whatever it is, it is the reason
        if restarts.is_restart(error):
            rows.write({"again": restarts.constants()})
            file.flush()
            return
        why = f"{type(error).__name__}: {str(error).strip()}"
        if target.kind != CPU:
            why = why_missing() or why
    if open_choices:
        counted = [f"{text} ({count}×)" if count > 1 else text for text, count in Counter(open_choices).items()]
        what = f"what PyTorch chooses by timing in {compile} for {target.name}"
        book.gap(CaptureGap(what, f"not tuned: {', '.join(counted)}"))
    book.caught(lambda: _put_guards(book, f"{compile}/{target.name}", of_script))
    for found in decided:
        text, data = cuda_graphs.stage_text(found), cuda_graphs.stage_data(found)
        book.put_stage(f"{compile}/{target.name}", CUDA_GRAPHS.name, text, 0, data, found.backward)
        for skip in cuda_graphs.skips(found):
            rows.write({"skip": skip})
    rows.write({"codegen": why, "seconds": time.monotonic() - started})
    rows.write({"imported": [name for name in sys.modules if name not in imported and name.startswith(_OF_COMPILERS)]})
    file.flush()
    os.nice(10)  # nobody waits now
    started = time.monotonic()
    if seconds is not None:
        _compile_kernels(book, rows, target, started + seconds)
    rows.write({"end": time.monotonic() - started})
    file.flush()


def _put_guards(book: RunBook, compile: str, of_script: int) -> None:
    """Writes the guards that Inductor has added for the target to those of the script, if there are any."""
    if added := guards_on_sizes()[of_script:]:
        book.put_stage(compile, GUARDS.name, "".join(f"{guard}\n" for guard in added), 0)


def _be_quiet() -> None:
    faulthandler.disable()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    parent = os.getppid()

    def end_with_the_run() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=end_with_the_run, daemon=True).start()


# --- kernels ----------------------------------------------------------------------------------------------------------


def _compile_kernels(book: RunBook, rows: Rows, target: Target, until: float) -> None:
    left = 0
    for stage, kernel in list(rows.kernels.items()):
        if stage not in rows.texts:
            continue
        if time.monotonic() > until:
            left += 1
            continue
        try:
            _compile_kernel(book, rows, target, kernel, rows.texts[stage])
        except Exception as error:  # noqa: BLE001  of Triton's and LLVM's, whatever it is
            why = str(error) if isinstance(error, NotCompiledError) else f"{type(error).__name__}: {error}"
            book.gap(CaptureGap(f"the stages of {stage} below its source", why[:2000]))
        rows.flush()
    if left:
        what = f"the stages of {count(left, 'kernel')} for {target.name} below their source"
        book.gap(CaptureGap(what, "the time for compiling kernels of targets is used up (docs/targets.md)"))


def _compile_kernel(book: RunBook, rows: Rows, target: Target, kernel: Kernel, text: str) -> None:
    made = compiled_kernel(kernel.name, text, number_of(book.request.configs, kernel.name) or 1)
    stage = kernel.stage
    compiled = TritonKernel(
        name=kernel.name,
        files=files_in(made.folder, made.function),
        source_file=made.file,
        config=made.config,
        configs=len(made.configs),
        options=made.configs,
    )
    compiled = dataclasses.replace(compiled, facts=spills_of(compiled.files))
    backward = "/kernel-backward" in stage
    for lowered in lowered_stages(compiled, stage, text):
        id = f"{stage}/{lowered.name}"
        book.write_stage(kernel.compile, lowered.name, id, lowered.text, lowered.data, backward=backward)
    with contextlib.suppress(OSError, ValueError):  # what nobody asked for may fail
        if (slow := slow_kernel(compiled, text, target)) is not None:
            which = made.configs.index(made.config) + 1, len(made.configs)
            rows.write({"slow": [*slow, stage, which]})


# --- the device -------------------------------------------------------------------------------------------------------


def _set_driver(target: Target, properties: Any) -> None:
    """Has triton answer for the device.  Raises ImportError if it is not installed."""
    compiler: Any = importlib.import_module("triton.backends.compiler")
    runtime: Any = importlib.import_module("triton.runtime")
    architecture = target.architecture if target.kind == "hip" else 10 * properties.major + properties.minor
    gpu = compiler.GPUTarget(target.kind, architecture, properties.warp_size)
    device = sys.modules["torch"].device("cuda:0")
    runtime.driver.set_active(
        types.SimpleNamespace(
            get_current_target=lambda: gpu,
            get_current_device=lambda: 0,
            get_current_stream=lambda *_: 0,
            get_active_torch_device=lambda: device,
            set_current_device=lambda *_: None,
            is_active=lambda: True,
            launcher_cls=None,
        )
    )
