"""Which kernels of a library belong to one call, by their names: a product may have a second kernel that adds up its parts.

Only a replayed CUDA graph needs this: elsewhere each kernel leads to the operator that launched it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CALLS = (
    ("attention", re.compile(r"attention")),
    ("convolution", re.compile(r"conv")),
    ("product", re.compile(r"mm\Z|matmul|_mm_|addmv|\Amv\Z")),
)
_KERNELS = (
    ("attention", re.compile(r"fmha|flash_|attention|sdpa", re.IGNORECASE)),
    ("convolution", re.compile(r"conv|dgrad|wgrad|cudnn", re.IGNORECASE)),
    ("product", re.compile(r"gemm|nvjet|gemv|cutlass", re.IGNORECASE)),
)
_AFTER = re.compile(r"splitk", re.IGNORECASE)
"""It ends the call before it; what has no name of its own prepares the call after it."""


def call_family(call: str) -> str:
    """``product``, ``convolution``, ``attention`` or an empty text for a call in output code."""
    return next((family for family, pattern in _CALLS if pattern.search(call)), "")


def _kernel_family(kernel: str) -> str:
    if _AFTER.search(kernel):
        return ""
    return next((family for family, pattern in _KERNELS if pattern.search(kernel)), "")


def grouped(kernels: Sequence[str], calls: Sequence[str]) -> list[list[int]]:
    """The kernels of each call, as indices; empty if the names leave a choice.

    Args:
        kernels: Their names, in the order in which they ran.
        calls: The families of the calls, in their order.
    """
    groups: list[tuple[str, list[int]]] = []
    waiting: list[int] = []
    for at, name in enumerate(kernels):
        family = _kernel_family(name)
        if _AFTER.search(name) and groups and not waiting:
            groups[-1][1].append(at)
        elif not family:
            waiting.append(at)
        elif family != "product" and groups and groups[-1][0] == family and not waiting:
            groups[-1][1].append(at)  # attention and convolutions have several
        else:
            groups.append((family, [*waiting, at]))
            waiting = []
    if groups:
        groups[-1][1].extend(waiting)
    return [each for _, each in groups] if [family for family, _ in groups] == list(calls) else []
