"""Kernels for devices that are not here: beside each graph that Inductor compiles, a copy for each target of the run.

The copy is compiled in a forked child of the run's process.  So nothing that it changes reaches the script, it works
while the script's own graph is compiled, and if it crashes or hangs the script does not.  What the child sees goes
through its copy of the capture, and comes back as plain data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.internals.device_stand_in import become, compile_for, each_graph_hook
from irscope.internals.hooks import Hook
from irscope.pipelines.inductor.kernels import Kernels
from irscope.protocol import CaptureGap, Compile, CompileOutcome, Kernel, StageRef, from_json, to_json
from irscope.targets.catalogue import Target, catalogue

_SECONDS = 300.0
"""After these a child is ended."""
_LONGEST = 500_000_000
_LOOK_SECONDS = 0.01


class Copied:
    """Takes the place of the run store in a child: keeps what is written, as plain data."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def put_stage(self, run: str, compile: str, stage: StageRef, text: str | None, order: float, data: Any) -> None:
        """See `Store.put_stage`."""
        self.written.append({"stage": to_json(stage), "text": text, "order": order, "data": data})

    def put_stage_data(self, run: str, stage: str, data: Any) -> None:
        """See `Store.put_stage_data`."""
        self.written.append({"of": stage, "data": data})

    def put_kernel(self, run: str, kernel: Kernel) -> None:
        """See `Store.put_kernel`."""
        self.written.append({"kernel": to_json(kernel)})

    def put_gap(self, run: str, gap: CaptureGap) -> None:
        """See `Store.put_gap`."""
        self.written.append({"gap": to_json(gap)})

    def put_compile(self, run: str, compile: Compile) -> None:
        """The parent knows the compile."""

    def put_finding(self, run: str, finding: Any) -> None:
        """Findings are about the script's own run."""

    def put_source(self, run: str, file: str, text: str) -> None:
        """The parent keeps the sources of what comes back."""

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Nothing is visible before the end in any case."""
        return contextlib.nullcontext()


@dataclasses.dataclass
class _Child:
    target: Target
    pid: int
    file: Any
    started: float


class Targets:
    """Compiles a copy of each graph for each target of the run."""

    def __init__(self, book: RunBook, kernels: Kernels) -> None:
        self._book, self._kernels = book, kernels
        known = catalogue()
        self._targets = [known.named(name) for name in book.request.targets]
        self._seconds: dict[str, float] = {}  # id of a prediction → of its graphs so far

    def hooks(self) -> list[Hook]:
        """What is patched in Inductor; nothing without targets."""
        return [each_graph_hook(self._compiled)] if self._targets else []

    def _compiled(self, original: Callable[..., Any], graph: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        children: list[_Child] = []
        compile = self._book.current_compile("target") if self._book.is_open and not self._book.is_quiet else None
        work = functools.partial(compile_for, original, graph, args, kwargs)
        for target in self._targets if compile is not None else ():
            self._book.caught(functools.partial(self._begin, children, target, str(compile), work))
        try:
            return original(graph, *args, **kwargs)
        finally:
            for child in children:
                self._book.caught(functools.partial(self._ended, child, str(compile)))

    # --- the child ----------------------------------------------------------------------------------------------------

    def _begin(self, children: list[_Child], target: Target, compile: str, work: Callable[[], None]) -> None:
        if not hasattr(os, "fork"):
            raise OSError("this system cannot copy a process, which targets need")
        file = tempfile.TemporaryFile()  # noqa: SIM115  closed when the child has ended
        started = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of newer versions of Python, about threads of the parent
            pid = os.fork()
        if pid:
            children.append(_Child(target, pid, file, started))
            return
        status = 1
        try:
            self._in_child(target, compile, file, work)
            status = 0
        finally:
            os._exit(status)

    def _in_child(self, target: Target, compile: str, file: Any, work: Callable[[], None]) -> None:
        faulthandler.disable()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        copied, why = Copied(), ""
        self._book.go_on_in_child(copied, target.name)
        self._kernels.same_graph(f"{compile}/{target.name}", compile)
        try:
            properties = properties_of(target)
            with contextlib.suppress(ImportError):  # then Inductor says at the first kernel what is missing
                _set_driver(properties)
            become(properties)
            work()
        except BaseException as error:  # noqa: BLE001  whatever it is, it is the reason
            why = f"{type(error).__name__}: {str(error).strip()}"
        file.write(json.dumps({"written": copied.written, "why": why}).encode("utf-8", "surrogatepass"))
        file.flush()

    # --- what comes back ----------------------------------------------------------------------------------------------

    def _ended(self, child: _Child, compile: str) -> None:
        """Waits for a child and writes what it has seen into the run."""
        why = _waited(child)
        said: dict[str, Any] = {}
        with child.file as file:
            file.seek(0)
            with contextlib.suppress(ValueError):
                said = json.loads(file.read(_LONGEST).decode("utf-8", "surrogatepass"))
        name = f"{compile}/{child.target.name}"
        seconds = self._seconds[name] = self._seconds.get(name, 0.0) + time.monotonic() - child.started
        why = why or str(said.get("why", "the process that compiled it ended early"))
        base = self._book.compiles.get(compile)
        about = base or Compile(compile, "?", "?", 1, CompileOutcome.COMPILED, 0, 0, 0.0)
        outcome = CompileOutcome.ERROR if why else CompileOutcome.COMPILED
        self._book.put_prediction(
            dataclasses.replace(
                about, id=name, outcome=outcome, seconds=round(seconds, 6), target=child.target.name, stages=()
            )
        )
        for row in said.get("written", ()):
            self._put(name, child.target.name, row)
        if why:
            self._book.gap(CaptureGap(f"kernels of {compile} for {child.target.name}", why[:2000]))

    def _put(self, compile: str, target: str, row: dict[str, Any]) -> None:
        book = self._book
        if "stage" in row:
            stage = from_json(StageRef, row["stage"])
            book.keep_stage_id(stage.id)
            book.write_version(compile, stage, row["text"], float(row["order"]), row["data"])
        elif "of" in row:
            book.put_data(str(row["of"]), row["data"])
        elif "kernel" in row:
            book.put_kernels([dataclasses.replace(from_json(Kernel, row["kernel"]), target=target)])
        elif "gap" in row:
            book.gap(from_json(CaptureGap, row["gap"]))


def _waited(child: _Child) -> str:
    """Why nothing came of a child; empty if it ended by itself."""
    while time.monotonic() - child.started < _SECONDS:
        try:
            pid, status = os.waitpid(child.pid, os.WNOHANG)
        except ChildProcessError:  # the script has waited for all its children, this one included
            return ""
        if pid:
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            return f"the process that compiled it was ended by {signal.Signals(number).name}" if number else ""
        time.sleep(_LOOK_SECONDS)
    os.kill(child.pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.pid, 0)
    return f"it took longer than {_SECONDS:.0f} s"


def _set_driver(properties: Any) -> None:
    """Has triton answer for the device.  Raises ImportError if it is not installed."""
    compiler: Any = importlib.import_module("triton.backends.compiler")
    runtime: Any = importlib.import_module("triton.runtime")
    target = compiler.GPUTarget("cuda", 10 * properties.major + properties.minor, properties.warp_size)
    device = sys.modules["torch"].device("cuda:0")
    runtime.driver.set_active(
        types.SimpleNamespace(
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            get_current_stream=lambda *_: 0,
            get_active_torch_device=lambda: device,
            set_current_device=lambda *_: None,
            is_active=lambda: True,
            launcher_cls=None,
        )
    )


def properties_of(target: Target) -> Any:
    """What ``torch.cuda.get_device_properties`` would answer on a target."""
    major, _, minor = target.architecture.partition(".")
    number = {name: int(figure.value) for name, figure in target.figures.items()}
    return types.SimpleNamespace(
        name=target.reported[0] if target.reported else target.title,
        major=int(major),
        minor=int(minor),
        multi_processor_count=number["processors"],
        total_memory=number["memory"],
        regs_per_multiprocessor=number["registers"],
        max_threads_per_multi_processor=number["threads"],
        max_threads_per_block=number.get("threads_per_block", 1024),
        warp_size=number["warp"],
        L2_cache_size=number["l2"],
        shared_memory_per_block=number["shared_memory_per_block"],
        shared_memory_per_block_optin=number["shared_memory_per_block_optin"],
        shared_memory_per_multiprocessor=number["shared_memory"],
        gcnArchName="",
        is_integrated=False,
    )
