"""What PyTorch has for CUDA alone, as something that works on the CPU: for a run with targets.

``tensor.cuda()`` is the tensor, streams and events do nothing, and memory in use is 0 bytes.  Whether there is a GPU is
answered with yes to the user's files where they name CUDA, since their branch for the GPU is the one of interest.
Packages get the true answer.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_user_file

_NOTHING = (
    "synchronize", "empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated", "set_device", "ipc_collect",
    "set_per_process_memory_fraction", "manual_seed", "manual_seed_all", "init",
)  # fmt: skip
_ZERO = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")


def hook(properties: Any, is_wanted: Callable[[], bool], devices: int = 1) -> Hook:
    """The hook of a run.

    Args:
        properties: Properties of the first target, as ``torch.cuda.get_device_properties`` has them.
        is_wanted: Whether the user's files name CUDA, as far as they are loaded.
        devices: How many GPUs the machine has.
    """

    def apply(torch: types.ModuleType) -> Undo:
        _start_autograd(torch)
        cuda, version = torch.cuda, (properties.major, properties.minor)
        undo = [replace_attribute(cuda, name, _answer(None)) for name in _NOTHING if hasattr(cuda, name)]
        undo += [replace_attribute(cuda, name, _answer(0)) for name in _ZERO if hasattr(cuda, name)]
        answers = {
            "is_available": True, "device_count": devices, "current_device": 0, "get_device_name": properties.name,
            "get_device_capability": version, "get_device_properties": properties, "is_bf16_supported": True,
        }  # fmt: skip
        for name, value in answers.items():
            undo.append(replace_attribute(cuda, name, _to_the_user(value, getattr(cuda, name), is_wanted)))
        undo += [
            replace_attribute(cuda, "Event", _Event),
            replace_attribute(cuda, "Stream", _Stream),
            replace_attribute(cuda, "stream", lambda _=None: contextlib.nullcontext()),
            replace_attribute(cuda, "current_stream", lambda _=None: _Stream()),
            replace_attribute(cuda.amp, "autocast", functools.partial(torch.autocast, "cpu")),
            replace_attribute(cuda.amp, "GradScaler", functools.partial(torch.amp.GradScaler, "cpu")),
            _on_class(torch.Tensor, "cuda"),
            _on_class(torch.Tensor, "pin_memory"),
            _on_class(torch.nn.Module, "cuda"),
        ]
        return undo_all(undo)

    return Hook("what the script does on the GPU", "torch", "2.11 and 2.13", apply)


def _start_autograd(torch: Any) -> None:
    """Has autograd count the devices now, while they are hidden: none, so it starts no threads for them.

    Once it has such threads no forked child can use it, and a prediction is made in one.  Seen with torch 2.11 for CUDA
    on an H100, where autograd first ran while a graph was traced: every prediction after the first failed.
    """
    torch.ones((), requires_grad=True).backward()


def _answer(value: object) -> Callable[..., Any]:
    return lambda *_, **__: value


def _to_the_user(value: object, otherwise: Callable[..., Any], is_wanted: Callable[[], bool]) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> Any:
        caller = next(iter(callers()), None)
        asks = is_wanted() and caller is not None and is_user_file(caller.f_code.co_filename)
        return value if asks else otherwise(*args, **kwargs)

    return answer


def _on_class(holder: type[Any], name: str) -> Undo:
    """A method that gives back the object itself; it may be inherited."""
    own = name in vars(holder)
    before = getattr(holder, name)
    setattr(holder, name, lambda self, *_, **__: self)
    return lambda: setattr(holder, name, before) if own else delattr(holder, name)


class _Stream:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = sys.modules["torch"].device("cpu")

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to leave."""

    def synchronize(self) -> None:
        """Everything is done already."""

    wait_stream = wait_event = record_event = lambda self, *_: None


class _Event:
    def __init__(self, *_: Any, **__: Any) -> None:
        self._at = 0.0

    def record(self, *_: Any) -> None:
        """Keeps the time, since the CPU has done what came before."""
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """Everything is done already."""

    def query(self) -> bool:
        """Everything is done already."""
        return True

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds up to another event."""
        return 1000 * (end._at - self._at)

    wait = lambda self, *_: None  # noqa: E731
