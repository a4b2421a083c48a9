"""The name of the GPU that a run uses, for estimates of times."""

from __future__ import annotations

import sys
from typing import Any


def device_name() -> str:
    """As PyTorch reports it, ``NVIDIA H100 80GB HBM3``; empty while the script itself has not initialized CUDA.

    Nothing is initialized for it: a context costs memory and time, and afterwards no fork of the script could use CUDA.
    """
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        return str(cuda.get_device_name()) if cuda is not None and cuda.is_initialized() else ""
    except (RuntimeError, AttributeError):  # a kernel has failed, and no call of CUDA's works any more
        return ""
