"""Notes what memory one step of a script takes, while the script runs.

A step is what happens between two calls of the first program that the script compiled: the call, its backward, the
optimizer.  The first step is taken before which one was through without a compile.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from irscope.capture.programs import Program
from irscope.internals.allocations import MemoryProfiler
from irscope.internals.fake_run import is_the_scripts
from irscope.internals.frames import report, user_locals
from irscope.internals.hooks import Hook
from irscope.internals.run_memory import CUBLAS_WORKSPACES, is_parameter, tensors_in
from irscope.profiling.step_memory import (
    BUFFERS,
    FLOAT32,
    GRAPHS,
    HELD,
    INPUTS,
    PARAMETERS,
    STATES,
    VARIABLES,
    VIEW,
    WORKSPACE,
)
from irscope.protocol import CaptureGap

_MOST_HELD, _MOST_ITEMS, _LONGEST_NAME = 20_000, 10_000, 200
_OWN, OTHERS = "irscope's own", "other tensors"
Held = tuple[int, str, str, str]
"""A block: its bytes, what it is for, its name, and why it is larger or older than it need be (`step_memory.WHYS`)."""


class StepMemory:
    """Notes one step.

    Args:
        compiled: A number that grows with each compile.
        own: The tensors that irscope holds for later.
    """

    def __init__(self, compiled: Callable[[], int], own: Callable[[], Iterable[Any]]) -> None:
        self._compiled, self._own = compiled, own
        self._profiler = MemoryProfiler()
        self._first: Program | None = None
        self._calls, self._compiled_before = 0, -1
        self._begun: dict[str, Any] = {}
        self._freed = Freed()
        self.facts: dict[str, Any] | None = None

    def hook(self) -> Hook:
        """What makes way for a profiler of the script's."""
        return self._profiler.hook()

    def called(self, program: Program, arguments: Any) -> None:
        """A compiled program is being called."""
        self._guarded(self._called, program, arguments)

    def begin(self, what: str, arguments: Any) -> None:
        """Notes what is held, and begins; `what` is ``step``, or ``call`` of a program after the script."""
        self._guarded(self._begin, what, arguments)

    def end(self) -> None:
        """Ends what has begun; a step in which something was compiled is not kept."""
        self._guarded(self._end)

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        """An error of ours is a gap: it never reaches the script, and ends the notes of this run."""
        try:
            function(*args)
        except Exception as error:  # noqa: BLE001
            self.facts = {}
            report(CaptureGap("the memory of a step", repr(error)))
            with contextlib.suppress(Exception):  # the first error is what is told
                self._profiler.give_up()

    def _called(self, program: Program, arguments: Any) -> None:
        torch: Any = sys.modules["torch"]
        self._first = program if self._first is None else self._first
        if program is not self._first or self.facts is not None or torch.compiler.is_compiling():
            return
        self._end()
        compiled, before = self._compiled(), self._compiled_before
        self._compiled_before = compiled
        self._calls += 1
        if self.facts is None and self._calls > 2 and compiled == before:
            self._begin("step", arguments)

    def _begin(self, what: str, arguments: Any) -> None:
        torch: Any = sys.modules["torch"]
        device = torch.cuda.is_initialized()
        held, own = held_now(device, self._own(), self._freed, arguments)
        self._begun = {
            "what": what, "call": self._calls, "is_device": device, "held": held,
            "in_use": torch.cuda.memory_allocated() - own if device else None, "segments": _segments(torch, device),
        }  # fmt: skip
        if not self._profiler.start():
            self._begun = {}

    def _end(self) -> None:
        if not self._profiler.is_running:
            return
        noted, freed = self._profiler.stop(), self._freed.blocks()
        self._begun["segments"] += _segments(sys.modules["torch"], self._begun["is_device"])
        if not self._begun["is_device"]:  # the profiler sees only what it has seen being allocated
            noted["blocks"] = sorted([*noted["blocks"], *freed])
        if self._compiled() == self._compiled_before or self._begun["what"] != "step":
            self.facts = {**self._begun, **noted}


class Freed:
    """The tensors that Python lets go of, with the time: when the last one of a block goes, the block does."""

    def __init__(self) -> None:
        self._of: dict[int, list[Any]] = {}
        self._sizes: dict[int, int] = {}
        self._went: list[tuple[int, int]] = []

    def watch(self, tensor: Any, address: int, size: int) -> None:
        """Hears when a tensor goes."""
        alive = self._of.setdefault(address, [])
        self._sizes[address] = size

        def went(reference: Any) -> None:
            alive.remove(reference)
            if not alive:
                self._went.append((time.time_ns(), address))

        alive.append(weakref.ref(tensor, went))

    def blocks(self) -> list[list[Any]]:
        """What went since the last time, as rows of `irscope.internals.allocations.facts_of`; nothing is watched any more."""
        rows = [[when, address, -self._sizes[address], 0, 0, False, -1] for when, address in self._went]
        self._of, self._sizes, self._went = {}, {}, []
        return rows


def _segments(torch: Any, device: bool) -> list[list[int]]:
    """What the allocator of a GPU has from it, as ``[address, bytes]``."""
    return [[each["address"], each["total_size"]] for each in torch.cuda.memory_snapshot()] if device else []


def held_now(device: bool, own: Iterable[Any], freed: Freed, arguments: Any = ()) -> tuple[list[list[Any]], int]:
    """The blocks of the tensors that Python holds now, each once, as ``[address, bytes, what for, name, why]``: parameters
    first, what no name is known for last.  And the bytes of irscope's `own` tensors, which are not among them.
    `arguments` are those of a program that is called."""
    torch: Any = sys.modules["torch"]
    held: dict[int, Held] = {}
    for tensor, kind, name in [*((tensor, _OWN, "") for tensor in own), *_tensors(torch, arguments)]:
        if is_the_scripts(tensor) and tensor.is_cuda == device and (storage := storage_of(tensor)):
            address, size = storage
            held.setdefault(address, (size, kind, name[:_LONGEST_NAME], _why_held(tensor, kind, size)))
            if not device:
                freed.watch(tensor, address, size)
    if device:
        held = _with_all_blocks(torch, held)
    largest = sorted(held.items(), key=lambda item: -item[1][0])
    rows = [[address, *row] for address, row in largest if row[1] != _OWN]
    return rows[:_MOST_HELD], sum(row[0] for _, row in largest if row[1] == _OWN)


def _tensors(torch: Any, arguments: Any) -> Iterator[tuple[Any, str, str]]:
    """All tensors, what each is for, and its name; again without a name at the end."""
    everything = gc.get_objects()
    inputs = tensors_in(torch, arguments)
    ids = {id(each) for each in inputs}
    yield from _of_modules([each for each in everything if issubclass(type(each), torch.nn.Module)])
    yield from _of_optimizers(torch, everything)
    yield from ((tensor, INPUTS if id(tensor) in ids else kind, name) for tensor, kind, name in _of_variables(torch))
    yield from ((each, INPUTS, "") for each in inputs)
    yield from ((each, OTHERS, "") for each in everything if issubclass(type(each), torch.Tensor))


def _with_all_blocks(torch: Any, held: Mapping[int, Held]) -> dict[int, Held]:
    """All blocks that the allocator of the GPU has handed out, with their real sizes."""
    found: dict[int, Held] = {}
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                size, address = int(block["size"]), int(block["address"])
                unknown = 0, HELD if size not in CUBLAS_WORKSPACES else WORKSPACE, "", ""
                _, kind, name, why = held.get(address, unknown)
                found[address] = size, kind, name, why
    return found


def storage_of(tensor: Any) -> tuple[int, int] | None:
    """The address and the bytes of what a tensor is stored in; None if it has no storage."""
    try:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError):
        return None
    return (address, size) if address and size else None


def _why_held(tensor: Any, kind: str, size: int) -> str:
    """Why a storage of `size` bytes is held though little of it is needed, or less would do; empty for most."""
    if kind == VARIABLES and tensor.grad_fn is not None:  # it keeps what autograd saved for a backward
        return GRAPHS
    if kind == STATES and tensor.dtype is sys.modules["torch"].float32 and tensor.dim():
        return FLOAT32
    return VIEW if 2 * tensor.numel() * tensor.element_size() <= size else ""


def _of_modules(modules: list[Any]) -> Iterator[tuple[Any, str, str]]:
    inner = {id(child) for module in modules for child in module._modules.values()}
    for root in modules:
        if id(root) in inner:
            continue
        for name, parameter in root.named_parameters():
            yield parameter, PARAMETERS, name.replace("_orig_mod.", "")
            if parameter.grad is not None:
                yield parameter.grad, "gradients", name.replace("_orig_mod.", "")
        for name, buffer in root.named_buffers():
            yield buffer, BUFFERS, name.replace("_orig_mod.", "")


def _of_optimizers(torch: Any, everything: list[Any]) -> Iterator[tuple[Any, str, str]]:
    for optimizer in (each for each in everything if issubclass(type(each), torch.optim.Optimizer)):
        for parameter, state in list(optimizer.state.items()):
            if is_parameter(parameter) and parameter.grad is not None:
                yield parameter.grad, "gradients", ""
            for name, value in list(state.items()) if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor):
                    yield value, STATES, f"{type(optimizer).__name__}.{name}"


def _of_variables(torch: Any) -> Iterator[tuple[Any, str, str]]:
    """Tensors that the user's variables hold, also in lists and dicts: globals of the script, and locals of its frames."""
    scopes = [vars(sys.modules["__main__"])]
    scopes += user_locals()
    for scope in scopes:
        for name, value in list(scope.items()):
            if isinstance(value, torch.Tensor):
                yield value, VARIABLES, name
                continue
            items = list(value.values()) if type(value) is dict else value if type(value) in (list, tuple) else ()
            yield from ((item, VARIABLES, name) for item in items[:_MOST_ITEMS] if isinstance(item, torch.Tensor))
