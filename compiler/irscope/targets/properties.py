"""A GPU of the catalogue as PyTorch describes one."""

from __future__ import annotations

import types
from typing import Any

from irscope.targets.catalogue import Target


def properties_of(target: Target) -> Any:
    """What ``torch.cuda.get_device_properties`` would answer on a target."""
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
