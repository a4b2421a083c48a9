"""Inductor's own profile of C++ kernels: each kernel then says to PyTorch's profiler when it begins and ends.

One statement is added to the text of a kernel (``RAIIAtenRecordFunctionHandle``), which costs nothing while no profiler runs.  Which
kernels there are, and what they compute, stays as it is.
"""

from __future__ import annotations

from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute


def hook() -> Hook:
    """Has the C++ kernels that are compiled from now on take part in PyTorch's profiles."""

    def apply(config: Any) -> Undo:
        return replace_attribute(config.cpp, "enable_kernel_profile", True)

    return Hook("measured time of C++ kernels", "torch._inductor.config", "2.13", apply)
