"""What holds the memory when an allocation fails: what Python knows, and the variables of the frames that the error left."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from irscope.internals.frames import locals_of
from irscope.profiling.step_memory import VARIABLES
from irscope.protocol import HeldTensor, OutOfMemory
from irscope.runner.step_memory import OTHERS, Freed, held_now, storage_of
from irscope.usercode.user_files import is_torch_file, is_user_file

_ASKED = re.compile(r"Tried to allocate ([\d.]+) (bytes|[KMGT]iB)|you tried to allocate (\d+) bytes")
"""As the allocators of GPUs and CPUs say it (CUDACachingAllocator.cpp and alloc_cpu.cpp of torch 2.11 to 2.14)."""
_UNITS = {"bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_MOST, _LONGEST = 500, 200


def out_of_memory(error: BaseException) -> OutOfMemory | None:
    """What was held when there was not enough memory; None for any other error, which is not asked for its text."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(error, RuntimeError):
        return None
    is_device = isinstance(error, torch.OutOfMemoryError)
    asked = asked_bytes(str(error)) if is_device or type(error) is RuntimeError else None
    if asked is None and not is_device:
        return None
    largest = sorted(_held(torch, error, is_device), key=lambda one: -one.bytes)
    return OutOfMemory(asked, is_device, tuple(largest[:_MOST]), sum(one.bytes for one in largest))


def _held(torch: Any, error: BaseException, is_device: bool) -> Iterable[HeldTensor]:
    """What Python knows to be held; what it has no name for has that of a variable of a frame."""
    known = held_now(is_device, (), Freed())[0]
    held = {address: HeldTensor(size, kind, name) for address, size, kind, name, _ in known}
    for file, name, tensor in _variables(torch, error):
        storage = storage_of(tensor) if tensor.is_cuda == is_device else None
        if storage is None:
            continue
        address, size = storage
        before = held.get(address)
        if before is None or before.kind == OTHERS:
            kind = VARIABLES if is_user_file(file) else OTHERS
            held[address] = HeldTensor(before.bytes if before else size, kind, name[:_LONGEST], file)
    return held.values()


def _variables(torch: Any, error: BaseException) -> Iterator[tuple[str, str, Any]]:
    """The tensors of the frames that are not torch's; output code is in no folder of torch."""
    for file, variables in locals_of(error):
        if not is_torch_file(file):
            yield from ((file, name, value) for name, value in variables.items() if isinstance(value, torch.Tensor))


def asked_bytes(text: str) -> int | None:
    """The bytes that were to be allocated, by the text of an allocator's error; None for any other text."""
    match = _ASKED.search(text)
    if match is None:
        return None
    return int(match[3]) if match[3] else int(float(match[1]) * 2 ** _UNITS[match[2]])
