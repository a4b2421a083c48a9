"""What a span of a trace is, by the names that PyTorch gives its own."""

from __future__ import annotations

import enum
import functools
import re

_REGION = re.compile(r"Torch-Compiled Region: (\d+/\d+)")
_CPP_KERNEL = re.compile(r"graph_\d+_(?P<name>\w+)\Z")
_WAITING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize")


def is_cpp_kernel(event: str) -> bool:
    """Whether a span is of a C++ kernel that Inductor generated."""
    return _CPP_KERNEL.match(event) is not None


def kernel_name(event: str) -> str:
    """The name of a C++ kernel without the number of its graph, which Inductor puts before it."""
    match = _CPP_KERNEL.match(event)
    return match["name"] if match else event


class Role(enum.Enum):
    """What a span is."""

    REGION = enum.auto()
    """A compiled function, also with the breaks in it."""
    LOOKUP = enum.auto()
    """A look-up of compiled code whose guards hold."""
    FORWARD = enum.auto()
    BACKWARD = enum.auto()
    """Both by autograd, of a compiled graph."""
    GRAPH = enum.auto()
    """A call of a compiled graph."""
    WAITING = enum.auto()
    """For the device."""
    FUNCTION = enum.auto()
    """A function of Python, where stacks were recorded."""
    CPP_KERNEL = enum.auto()
    RUNTIME = enum.auto()
    """PyTorch's code around a compiled graph."""
    ENGINE = enum.auto()
    """A node of autograd."""
    MARK = enum.auto()
    """By ``record_function``."""
    OTHER = enum.auto()


_NAMED = {
    "TorchDynamo Cache Lookup": Role.LOOKUP,
    "CompiledFunction": Role.FORWARD,
    "CompiledFunctionBackward": Role.BACKWARD,
    "Pregraph bytecode": Role.RUNTIME,
    "AOTDispatcher Runtime Wrapper Prologue": Role.RUNTIME,
}


@functools.lru_cache(maxsize=1 << 14)  # names come again and again
def role_of_span(name: str, category: str) -> tuple[Role, str]:
    """The role of a span, and the compile of a region."""
    if match := _REGION.match(name):
        return Role.REGION, match[1]
    if (named := _NAMED.get(name)) not in (None, Role.RUNTIME):
        return named, ""
    if name.startswith("## Call CompiledFxGraph"):
        return Role.GRAPH, ""
    if name.startswith(_WAITING):
        return Role.WAITING, ""
    if category == "python_function":
        return Role.FUNCTION, ""
    if _CPP_KERNEL.match(name):
        return Role.CPP_KERNEL, ""
    if named is not None:
        return named, ""
    if name.startswith(("autograd::engine", "torch::autograd")):
        return Role.ENGINE, ""
    if category == "user_annotation":
        return Role.MARK, ""
    return Role.OTHER, ""
