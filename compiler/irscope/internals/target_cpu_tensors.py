"""Tensors that a script with CUDA keeps on the CPU, in a program that is compiled for a device which is not here.

In the run all tensors are on the CPU.  What the script's text says of them is in `irscope.usercode.kept_on_cpu`: a call in
the compiled function that creates or moves a tensor, or the variable from which an input comes.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Sequence
from typing import Any

from irscope.internals.frames import callers
from irscope.usercode.kept_on_cpu import FILES
from irscope.vocabulary.records import dataclass

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_MOVES = ("to", "cpu")


@dataclass(frozen=True)
class CpuTensor:
    """A tensor on the CPU.

    Args:
        name: Name of its node in Dynamo's graph, or of the variable.
        stack: Where it is put there, as PyTorch prints a stack.
    """

    name: str
    stack: str


def cpu_tensors(program: Any, inputs: Sequence[Any]) -> list[CpuTensor]:
    """The tensors on the CPU in a graph of Dynamo's and its inputs, on the stack on which it is compiled."""
    return [*_created(program), *_given(inputs)] if FILES else []


def _created(program: Any) -> Iterator[CpuTensor]:
    for node in program.graph.nodes if hasattr(program, "graph") else ():
        if not node.op.startswith("call_") or not ("device" in node.kwargs or node.target in _MOVES):
            continue
        places = list(_FRAME.finditer(str(node.meta.get("stack_trace") or "")))
        if places and (kept := FILES.get(places[-1]["file"])) and int(places[-1]["line"]) in kept.lines:
            yield CpuTensor(str(node.name), str(node.meta["stack_trace"]))


def _given(inputs: Sequence[Any]) -> Iterator[CpuTensor]:
    # A number in a tensor without dimensions is moved by PyTorch itself.
    wanted = {id(each) for each in inputs if getattr(each, "ndim", 0)}
    for frame in callers():
        file, scope = frame.f_code.co_filename, frame.f_code.co_name
        if (kept := FILES.get(file)) is None:
            continue
        for name, value in frame.f_locals.items():
            if id(value) in wanted and (line := kept.line_of(scope, name)) is not None:
                wanted.discard(id(value))
                text = linecache.getline(file, line).strip()
                yield CpuTensor(name, f'  File "{file}", line {line}, in {scope}\n    {text}')
