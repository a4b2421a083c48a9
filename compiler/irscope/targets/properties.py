"""A GPU of the catalogue as PyTorch describes one."""

from __future__ import annotations

import types
from typing import Any

from irscope.targets.catalogue import CPU, Target

_NEEDED = (
    "processors", "memory", "l2", "registers", "threads", "warp", "shared_memory", "shared_memory_per_block",
)  # fmt: skip


def missing_figures(target: Target) -> list[str]:
    """The figures without which no kernels are predicted for a GPU."""
    return [] if target.kind == CPU else [name for name in _NEEDED if name not in target.figures]


def properties_of(target: Target) -> Any:
    """What ``torch.cuda.get_device_properties`` would answer on a target.  Raises KeyError if a figure is missing."""
    is_amd = target.kind == "hip"
    # gfx942 is 9.4.2: the last two digits are the minor version and the stepping.
    version = target.architecture.removeprefix("gfx")
    major, minor = (version[:-2], version[-2]) if is_amd else target.architecture.split(".")
    number = {name: int(figure.value) for name, figure in target.figures.items()}
    return types.SimpleNamespace(
        name=target.reported[0] if target.reported else target.title,
        major=int(major),
        minor=int(minor),
        multi_processor_count=number["processors"],
        total_memory=number["memory"],
        regs_per_multiprocessor=number["registers"],
        max_threads_per_multi_processor=number["threads"],
        max_threads_per_block=number.get("threads_per_block", 1024),
        warp_size=number["warp"],
        L2_cache_size=number["l2"],
        shared_memory_per_block=number["shared_memory_per_block"],
        shared_memory_per_block_optin=number.get("shared_memory_per_block_optin", number["shared_memory_per_block"]),
        shared_memory_per_multiprocessor=number["shared_memory"],
        gcnArchName=target.architecture if is_amd else "",
        is_integrated=False,
    )
