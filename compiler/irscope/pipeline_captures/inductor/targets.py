"""Kernels for devices that are not here: beside each program that Inductor compiles, a copy for each target of the run.

The copy is compiled in a forked child of the run's process (`irscope.pipeline_captures.inductor.target_child`).  So
nothing that it changes reaches the script, and if it crashes or hangs the script does not.  The script does not wait for
it: what it writes is read when it has ended, at a later compile or at the end of the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.findings import signals
from irscope.findings.kinds.missed_fusion import Refusal
from irscope.internals import fake_run, restarts, run_memory, triton_on_cpu
from irscope.internals.device_stand_in import Compile as CompileProgram
from irscope.internals.device_stand_in import autograd_hook, compile_for, each_program_hook, prepare_for_next
from irscope.internals.hooks import Hook
from irscope.pipeline_captures.inductor import fitting, target_child
from irscope.pipeline_captures.inductor.kernels import Kernels
from irscope.pipeline_captures.inductor.missing_triton import why_missing
from irscope.pipeline_captures.inductor.target_choices import TargetChoices
from irscope.pipeline_captures.inductor.target_launches import MOST, Launches, compile_kernel
from irscope.pipelines.inductor.stages import MEMORY_FIT, MEMORY_PLAN
from irscope.pipelines.registry import stage_kind
from irscope.protocol import (
    CaptureGap,
    Choices,
    Compile,
    CompileOutcome,
    DataWritten,
    GapSeen,
    KernelsWritten,
    Message,
    Origin,
    StageWritten,
    StoreWrite,
    decode_message,
    from_json,
)
from irscope.targets.catalogue import CPU, Target, catalogue

_NO_CHOICES = Choices({}, {})
_SECONDS, _FAKE_SECONDS = 300.0, 1800.0
"""After these, and those for its kernels, a child is ended; models of a run on fake tensors are large."""
_KERNEL_SECONDS = 60.0
"""How long a child compiles the kernels of one program down to machine code."""
_KERNEL_SECONDS_OF_RUN = 180.0
"""And all children of one target together."""
_AT_A_TIME = max(2, min(8, (os.cpu_count() or 2) // 2))
_WEIGHED = 10
"""Compiles at which all parameters of the script are looked for."""
_LONGEST = 500_000_000
_LOOK_SECONDS = 0.01


@dataclasses.dataclass
class _Child:
    target: Target
    compile: str
    pid: int
    file: Any
    started: float
    until: float


class Targets:
    """Compiles a copy of every program for each target of the run."""

    def __init__(self, book: RunBook, kernels: Kernels) -> None:
        self._book, self._kernels = book, kernels
        known = catalogue()
        self._targets = [known.named(name) for name in book.request.targets]
        self._children: list[_Child] = []
        self._launches = Launches()
        self._predictions: dict[str, Compile] = {}
        self._again: dict[str, list[str]] = {}  # compile → what is a constant when Dynamo traces it again
        self._optimizers = run_memory.Optimizers(keeps=book.request.fake)
        self._parameters = self._gradients = 0  # bytes of the script's, the most at any compile
        self._given: dict[str, tuple[int, int]] = {}  # compile → bytes of its parameters, and of their gradients
        self._graphs: dict[str, str] = {}  # id → text of a graph of a target, for a value run
        self._plans: dict[tuple[str, str, bool], dict[str, Any]] = {}  # (compile, target, backward) → memory plan
        self._kernel_seconds = {target.name: _KERNEL_SECONDS_OF_RUN for target in self._targets}

    def hooks(self) -> list[Hook]:
        """What is patched in Inductor; nothing without targets."""
        if not self._targets:
            return []
        fake = [fake_run.hook(self._book.guarded(self._value_needed))] if self._book.request.fake else []
        own = triton_on_cpu.hooks(_interpreted, self._book.guarded(self._launched))
        return [autograd_hook(), each_program_hook(self._compiled), self._optimizers.hook(), *own, *fake]

    def finish(self) -> None:
        """Waits for the children that are left, and writes what they have seen."""
        self._collect(0)
        for prediction in self._predictions.values():  # some ended before their compile, whose facts were not known
            base = self._book.compiles.get(prediction.id.removesuffix(f"/{prediction.target}"))
            if base is not None:
                known = dataclasses.replace(prediction, graph_ops=base.graph_ops, restarts=base.restarts)
                self._book.put_prediction(known)
        self._book.caught(self._fit)

    def wait(self) -> None:
        """Until all that has begun for targets is written."""
        self._book.caught(functools.partial(self._collect, 0))

    def graphs(self, compile: str, name: str) -> dict[str, str]:
        """The text of a graph of a compile by target, in a value run."""
        ids = {target.name: f"{compile}/{target.name}/{name}" for target in self._targets}
        return {target: self._graphs[id] for target, id in ids.items() if id in self._graphs}

    def _compiled(self, original: CompileProgram, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        compile = self._book.current_compile("target") if self._book.is_open and not self._book.is_quiet else None
        if compile is not None:
            self._book.caught(functools.partial(self._weigh, str(compile), args))
        for target in self._targets if compile is not None else ():
            replay = TargetChoices(target, self._replay_for(target), self._book.request.configs)
            work = functools.partial(compile_for, original, program, args, kwargs, replay, target.kind != CPU)
            self._book.caught(functools.partial(self._begin, target, str(compile), work))
        if self._book.request.fake:
            if compile is not None and restarts.has_floats(program):
                self._restart_as_children(str(compile))
            return program
        if triton_on_cpu.launches_kernels(program):
            what = f"the CPU's own code of {compile or 'a program'}"
            why = "it launches a kernel of Triton's, which is interpreted; the rest of the graph runs as it is written"
            self._book.gap(CaptureGap(what, why))
            return program
        return original(program, *args, **kwargs)

    def _launched(self, launch: triton_on_cpu.Launch) -> None:
        """A kernel is launched outside of compiled code."""
        if not self._book.is_open or self._book.is_quiet or not self._book.request.machine_code:
            return
        found = self._launches.new(launch)
        if self._launches.are_too_many:
            why = f"the first {MOST} are, which includes those with other types of arguments"
            self._book.gap(CaptureGap("more kernels that are launched outside of compiled code, for targets", why))
        elif found is not None:
            id, place = found
            for target in self._targets:
                if target.kind != CPU:
                    name = f"{id}/{target.name}"
                    work = functools.partial(compile_kernel, self._book, name, place, launch.compile)
                    self._begin(target, id, work, has_sources=False)

    def _restart_as_children(self, compile: str) -> None:
        """Where only targets are compiled, the script's Dynamo is asked for a restart if that of a target asks for one."""
        self._collect(0)
        if constants := self._again.pop(compile, None):
            restarts.restart(constants)

    def _value_needed(self, what: str) -> None:
        self._book.findings.signal(signals.VALUE_NEEDED, self._book.current_compile("value"), what)

    def _replay_for(self, target: Target) -> Choices:
        """What the real device has chosen by timing, where the request names a store of its runs."""
        request = self._book.request
        if not request.tuned:
            return _NO_CHOICES
        if (choices := request.choices.get(target.name)) is None:
            why = f"no run in {request.tuned} was on {target.title}"
            self._book.gap(CaptureGap(f"what {target.name} has chosen by timing", why))
        return choices or _NO_CHOICES

    def _begin(self, target: Target, compile: str, work: Callable[[], None], has_sources: bool = True) -> None:
        """Forks a child for some work; ``has_sources``: it leaves sources of kernels, which are then compiled."""
        if not hasattr(os, "fork"):
            raise OSError("this system cannot copy a process, which targets need")
        self._collect(_AT_A_TIME - 1)
        file = tempfile.TemporaryFile()  # noqa: SIM115  closed when the child has ended
        started = time.monotonic()
        left = min(_KERNEL_SECONDS, self._kernel_seconds[target.name])
        seconds = left if has_sources and self._book.request.machine_code else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of newer versions of Python, about threads of the parent
            pid = os.fork()
        if pid:
            until = started + (_FAKE_SECONDS if self._book.request.fake else _SECONDS) + 2 * (seconds or 0)
            self._children.append(_Child(target, compile, pid, file, started, until))
            return
        status = 1
        try:
            target_child.work(self._book, self._kernels, target, compile, file, work, seconds)
            status = 0
        finally:
            os._exit(status)

    # --- what comes back ----------------------------------------------------------------------------------------------

    def _collect(self, most: int) -> None:
        """Takes in children that have ended, and waits until no more than so many are left."""
        while len(self._children) > most:
            child = self._children.pop(0)
            why = _waited(child)
            self._book.caught(functools.partial(self._ended, child, why))

    def _ended(self, child: _Child, why: str) -> None:
        """Writes what a child has seen into the run."""
        target, name = child.target.name, f"{child.compile}/{child.target.name}"
        rows = _rows_of(child)
        if again := [row["again"] for row in rows if "again" in row]:
            self._again[child.compile] = again[0]
            return  # of the next trace there is another child
        said = {key: row[key] for row in rows for key in ("codegen", "seconds", "end") if key in row}
        if "codegen" in said:
            why, late = str(said["codegen"]), "" if "end" in said else why or "the process ended early"
        else:
            why, late = why or "the process that compiled it ended early", ""
        prepare_for_next([str(name) for row in rows for name in row.get("imported", ())])
        self._kernel_seconds[target] -= min(float(said.get("end", _KERNEL_SECONDS)), self._kernel_seconds[target])
        outcome = CompileOutcome.ERROR if why else CompileOutcome.COMPILED
        self._predict(child, name, outcome, float(said.get("seconds", time.monotonic() - child.started)))
        self._take_rows(child, name, rows)
        self._tell_gaps(child, why, late)

    def _take_rows(self, child: _Child, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Writes the stages and kernels that a child has sent, and reports what is slow in them."""
        target = child.target.name
        lines: dict[str, tuple[Origin, ...]] = {}
        for row in rows:
            if "is" in row:
                self._put(name, target, message := decode_message(row))
                if isinstance(message, KernelsWritten):  # what is written last has the most lines
                    lines.update({kernel.stage: kernel.origins for kernel in message.kernels if kernel.origins})
            if "slow" in row:
                code, what, stage, which = row["slow"]
                slow = (str(code), str(what), str(stage), which, lines.get(str(stage), ()))
                self._book.findings.signal(signals.KERNEL_IS_SLOW, child.compile, target, slow)
            if "apart" in row:
                refusals = [from_json(Refusal, each) for each in row["apart"]]
                self._book.findings.signal(signals.FUSION_PREDICTED, child.compile, target, refusals)
            if "skip" in row:
                self._book.findings.signal(signals.CUDA_GRAPH_PREDICTED, child.compile, target, str(row["skip"]))

    def _tell_gaps(self, child: _Child, why: str, late: str) -> None:
        """Says that there are no kernels, or that what is below their source is missing."""
        target = child.target.name
        if why:
            of = "" if why == why_missing() else f" of {child.compile}"  # what holds for all is told once
            self._book.gap(CaptureGap(f"kernels{of} for {target}", why[:2000]))
        if late:
            what = f"the stages of some kernels of {child.compile} for {target} below their source"
            self._book.gap(CaptureGap(what, late))

    def _predict(self, child: _Child, name: str, outcome: CompileOutcome, seconds: float) -> None:
        """Writes the compile that was predicted, as the one here but for its outcome and its time."""
        compiled_here = (
            self._launches.compiles.get(child.compile)
            or self._book.compiles.get(child.compile)
            or Compile(child.compile, "?", "?", 1, CompileOutcome.COMPILED, 0, 0, 0.0)
        )
        prediction = dataclasses.replace(
            compiled_here, id=name, outcome=outcome, seconds=round(seconds, 6), target=child.target.name, stages=()
        )
        self._predictions[name] = prediction
        self._book.put_prediction(prediction)

    def _put(self, compile: str, target: str, message: Message | StoreWrite) -> None:
        book = self._book
        if isinstance(message, StageWritten):
            if message.stage.name == MEMORY_PLAN.name:
                base = compile.removesuffix(f"/{target}")
                is_backward = message.stage.id.rpartition("/")[2] != MEMORY_PLAN.name
                self._plans[base, target, is_backward] = json.loads(message.data or "null")
            if book.request.values is not None and stage_kind(message.stage.name).is_graph:
                self._graphs[message.stage.id] = message.text or ""
            book.keep_child_s(message)
        elif isinstance(message, DataWritten):
            book.put_data(message.stage, json.loads(message.data or "null"))
        elif isinstance(message, KernelsWritten):
            book.put_kernels([dataclasses.replace(kernel, target=target) for kernel in message.kernels])
        elif isinstance(message, GapSeen):
            book.gap(message.gap)

    # --- memory -------------------------------------------------------------------------------------------------------

    def _weigh(self, compile: str, args: tuple[Any, ...]) -> None:
        """Notes how large the script's parameters are, and those of a program with these arguments."""
        given = [each for each in (args[0] if args else ()) if run_memory.is_parameter(each)]
        trained = [each for each in given if each.requires_grad]
        self._given[compile] = run_memory.bytes_of(given), run_memory.bytes_of(trained)
        if len(self._given) <= _WEIGHED:
            alive = run_memory.parameters()
            trained = [each for each in alive if each.requires_grad]
            self._parameters = max(self._parameters, run_memory.bytes_of(alive))
            self._gradients = max(self._gradients, run_memory.bytes_of(trained))

    def _fit(self) -> None:
        """Writes for each prediction whether it fits into the memory of its target."""
        states = self._optimizers.state_bytes() if self._plans else 0
        step = self._optimizers.step_bytes
        memory = {target.name: int(target.value("memory") or 0) for target in self._targets}
        kept = dict[tuple[str, str], tuple[int, int, int]]()  # (frame, target) → bytes kept, of gradients, of libraries
        for compile, target in ((compile, target) for compile in self._given for target in self._targets):
            name, frame = target.name, compile.partition("/")[0]
            plan, backward = (self._plans.get((compile, name, is_backward)) for is_backward in (False, True))
            if plan is None or not memory[name]:
                continue
            mine = self._given[compile]
            before = _earlier([each for (other, of), each in kept.items() if of == name and other != frame])
            needs = fitting.needs_of(
                plan, backward, self._parameters, self._gradients, states, mine, step, before, _workspace(target)
            )
            if backward is not None:
                kept[frame, name] = fitting.kept_bytes(plan, backward), mine[1], needs.libraries
            text, data = fitting.stage_text(needs, memory[name], name), fitting.stage_data(needs, memory[name])
            self._book.put_stage(f"{compile}/{name}", MEMORY_FIT.name, text, 0, data)


def _earlier(kept: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    """What functions called before keep, and their gradients, together; the most of libraries."""
    return sum(each[0] for each in kept), sum(each[1] for each in kept), max((each[2] for each in kept), default=0)


def _workspace(target: Target) -> int:
    """Bytes of each thread that multiplies matrices."""
    hopper, before = run_memory.CUBLAS_WORKSPACES
    return (hopper if float(target.architecture) >= 9 else before) if target.kind == "cuda" else 0


def _interpreted(function: Any) -> Any:
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    return interpreter.InterpretedFunction(function)


def _rows_of(child: _Child) -> list[dict[str, Any]]:
    """What a child has written."""
    with child.file as file:
        file.seek(0)
        content = file.read(_LONGEST).decode("utf-8", "surrogatepass")
    rows: list[dict[str, Any]] = []
    for line in content.splitlines():
        with contextlib.suppress(ValueError):  # the last one of a child that was ended
            rows.append(json.loads(line))
    return rows


def _waited(child: _Child) -> str:
    """Why nothing came of a child; empty if it ended by itself."""
    while time.monotonic() < child.until:
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
    return f"it took longer than {child.until - child.started:.0f} s"
