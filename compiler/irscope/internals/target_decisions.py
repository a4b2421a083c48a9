"""Decisions of decompositions and of shape functions that depend on the device, taken as on the GPU.

Forward and backward are traced with CPU tensors (`irscope.internals.device_stand_in`).  On the way PyTorch's
decompositions ask ``x.device.type`` and ``x.is_cuda``: whether a layer norm keeps its sums in float32, or the gradient of
a bias becomes a sum.  They get the answer for the GPU.  Where they use the device itself, to create a tensor on it, they
get the true one.

Checked on torch 2.11 and 2.13.
"""

from __future__ import annotations

import dis
import functools
import importlib
import sys
import types
from typing import Any

from irscope.internals.frames import callers, is_file

_FILES = ("torch/_decomp/", "torch/_refs/", "torch/_prims_common/", "torch/_inductor/decomposition.py")


def decide_as_on(device: Any) -> None:
    """From now on in this process, for tensors of the CPU.

    Args:
        device: The ``torch.device`` whose type is answered.
    """
    torch: Any = sys.modules["torch"]
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor").FakeTensor
    functional: Any = importlib.import_module("torch._subclasses.functional_tensor").FunctionalTensor
    fake_device, true_device = fake.device, torch.Tensor.device

    def of_fake(tensor: Any) -> Any:
        found = fake_device.fget(tensor)
        return device if found.type == "cpu" and _asks_for_the_type(next(callers())) else found

    def of_functional(tensor: Any) -> Any:
        found = true_device.__get__(tensor)
        return device if found.type == "cpu" and _asks_for_the_type(next(callers())) else found

    def is_cuda(tensor: Any) -> Any:
        return tensor.device.type == device.type or _is_decomposition(next(callers()).f_code.co_filename)

    fake.device = property(of_fake, fake_device.fset)
    functional.device = property(of_functional)
    fake.is_cuda = functional.is_cuda = property(is_cuda)
    metas: Any = importlib.import_module("torch._meta_registrations")
    hint = metas.device_hint

    def device_hint(tensor: Any) -> Any:
        found = hint(tensor)
        return device.type if found == "cpu" else found

    metas.device_hint = device_hint
    torch._C._conv_determine_backend_memory_format = _layout_of_convolution


def _layout_of_convolution(x: Any, weight: Any, _: Any) -> Any:
    """The memory format that cuDNN's convolution returns, as ``cudnn_conv_suggest_memory_format`` in ATen; MIOpen's is
    contiguous unless a variable asks for more."""
    torch: Any = sys.modules["torch"]
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(weight.dim())
    if last is None or torch.version.hip or torch.float64 in (x.dtype, weight.dtype):
        return torch.contiguous_format
    suggest: Any = importlib.import_module("torch._prims_common").suggest_memory_format
    return last if last in (suggest(x), suggest(weight)) else torch.contiguous_format


def _asks_for_the_type(frame: types.FrameType) -> bool:
    return _is_decomposition(frame.f_code.co_filename) and frame.f_lasti in _types_asked(frame.f_code)


@functools.cache
def _is_decomposition(path: str) -> bool:
    return any(is_file(path, file) for file in _FILES)


@functools.cache
def _types_asked(code: types.CodeType) -> frozenset[int]:
    """The offsets of instructions that load ``x.device`` where ``.type`` is loaded from it at once, or where it is compared
    with the CPU's."""
    found = [one for one in dis.get_instructions(code) if one.opname not in _PADDING]
    return frozenset(
        one.offset
        for number, one in enumerate(found)
        if one.argval == "device" and one.opname.startswith("LOAD_ATTR") and _asks(found[number + 1 : number + 7])
    )


def _asks(following: list[dis.Instruction]) -> bool:
    if following and following[0].argval == "type" and following[0].opname.startswith("LOAD_ATTR"):
        return True
    # == torch.device("cpu")
    names = [one.argval for one in following[:3]]
    is_compared = any(one.opname == "COMPARE_OP" for one in following)
    return names == ["torch", "device", "cpu"] and is_compared


_PADDING = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG"})
