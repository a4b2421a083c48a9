"""The C++ that AOTInductor writes: a wrapper that calls kernels, and a file with those that are C++.

The wrapper calls a Triton kernel through a function ``call_NAME``, which launches the kernel's binary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from irscope.ir.kernels import KernelSource
from irscope.vocabulary.records import dataclass

_HANDLES = re.compile(r"^\s*// \[Provenance debug handles\] (?P<handles>.+)$")
_CALLED = re.compile(r"(?<![\w.>])(?P<name>[A-Za-z_]\w*)\(")
_BY_NAME = ("aoti_torch_proxy_executor_call_function", "aoti_torch_call_dispatcher")
"""Functions that call an operator which they get as an argument."""
_LIBRARY = re.compile(r"(?<![\w.>])(?P<name>aoti_torch_(?:(?:cpu|cuda|xpu|mps)_\w+|index_put_out|scatter_out))\(")
"""Calls that change memory in place have no handle (torch 2.9 to 2.13)."""
_KERNEL = re.compile(r'^extern "C" (?:__declspec\(dllexport\) )?\s*void\s+(?P<name>\w+)\(', re.MULTILINE)
_INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)
_NEAR = 40
"""Lines after the comment with its handle in which the call is looked for: arrays of sizes and strides come between."""


@dataclass(frozen=True)
class Call:
    """A call of a kernel or of a library.

    Args:
        name: As PyTorch's handle names it.
        handle: PyTorch's number of the call; None if it has none.
        line: 1-based, in the text of the wrapper.
    """

    name: str
    handle: int | None
    line: int


def calls_in(wrapper: str) -> list[Call]:
    """The calls of kernels and libraries, in the order of the text."""
    rows = wrapper.split("\n")
    found: list[Call] = []
    lines: set[int] = set()
    for number, row in enumerate(rows):
        match = _HANDLES.match(row) if "[Prov" in row else None
        for told in match["handles"].split(", ") if match else ():
            name, _, handle = told.strip().rpartition(":")
            if name and handle.isdigit():
                found.append(Call(name, int(handle), _line_of(name, rows, number + 1)))
                lines.add(found[-1].line)
        if number + 1 not in lines and "aoti_torch_" in row and (called := _LIBRARY.search(row)):
            found.append(Call(called["name"], None, number + 1))
    return found


def _line_of(name: str, rows: list[str], start: int) -> int:
    """The line (1-based) of the call after row ``start``; that row where it is not found."""
    for number in range(start, min(start + _NEAR, len(rows))):
        if _HANDLES.match(rows[number]):
            break
        called = {match["name"] for match in _CALLED.finditer(rows[number])}
        if not called.isdisjoint((name, f"call_{name}", *_BY_NAME)):
            return number + 1
    return start + 1


def kernels_of(wrapper: str, kernels: str, tuned: Iterable[KernelSource] = ()) -> list[KernelSource]:
    """The kernels that a wrapper calls: first those with a text, then the calls into libraries.

    Args:
        kernels: The text of the file with the kernels.
        tuned: The Triton kernels, which are not in that file.
    """
    generated = {name: KernelSource(name, "cpp", text) for name, text in _texts(kernels)}
    generated.update({kernel.name: kernel for kernel in tuned})
    called = dict.fromkeys(call.name for call in calls_in(wrapper))
    return [*generated.values(), *(KernelSource(name, "extern", "") for name in called if name not in generated)]


def _texts(kernels: str) -> Iterator[tuple[str, str]]:
    """Each kernel with the includes that it needs: a separate file."""
    starts = list(_KERNEL.finditer(kernels))
    for number, match in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(kernels)
        whole = kernels[match.start() : end]
        body = whole[: whole.find("\n}\n") + 3] if "\n}\n" in whole else whole
        before = starts[number - 1].start() if number else 0
        includes = dict.fromkeys(_INCLUDE.findall(kernels[before : match.start()]))
        yield match["name"], "\n".join([*includes, body.rstrip()]) + "\n"
