"""The stage ``cuda-graphs``: whether a target's run of a graph would use CUDA graphs, and why not.

Its data is that of `irscope.internals.target_cuda_graphs.CudaGraphs`: ``reasons``, ``graphs``, ``recorded``, ``left_out``
(``kernel``, ``why``, ``stack`` each) and ``records_each_size``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irscope.internals.target_cuda_graphs import CudaGraphs
from irscope.protocol import to_json
from irscope.vocabulary.units import count

_PREFIX = "skipping cudagraphs due to "
_MOST = 20
"""Findings of one graph."""


def stage_data(found: CudaGraphs) -> Any:
    """The data of the stage."""
    return to_json(found)


def stage_text(found: CudaGraphs) -> str:
    """The stage for people."""
    lines = ["# A prediction: Inductor decides this when it compiles. What only a call shows is open."]
    if found.reasons:
        lines.append("no CUDA graph: the whole graph runs without")
        lines += [f"  {line}" for reason in found.reasons for line in reason.replace(_PREFIX, "").strip().split("\n")]
        return "\n".join(lines) + "\n"
    total = found.recorded + len(found.left_out)
    lines.append(f"{count(found.graphs, 'CUDA graph')} with {found.recorded} of {count(total, 'kernel')}")
    if found.records_each_size:
        lines.append("one recording for each size of the inputs, since shapes are dynamic")
    for kernel in found.left_out:
        lines.append(f"outside: {kernel.kernel}: {kernel.why}")
        lines += [f"  {line.strip()}" for line in kernel.stack.strip().split("\n") if line.strip()]
    return "\n".join(lines) + "\n"


def skips(found: CudaGraphs) -> Iterator[str]:
    """What is to be a finding, as PyTorch would say it: with the user's stack."""
    yield from found.reasons
    if found.reasons:
        return
    total, by_place = found.recorded + len(found.left_out), dict[tuple[str, str], int]()
    for kernel in found.left_out:
        by_place[kernel.why, kernel.stack] = by_place.get((kernel.why, kernel.stack), 0) + 1
    for (why, stack), number in list(by_place.items())[:_MOST]:
        yield f"{number} of {count(total, 'kernel')} outside of them, {why}. Found from : \n {stack}"
