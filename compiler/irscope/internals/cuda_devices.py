"""How PyTorch counts CUDA's devices, and whether that has made CUDA unusable in forks.

The fork server asks both before any run, so a name that does not fit leaves no capture gap.  The fork server then
counts as torch does, or assumes that CUDA is usable; if it is not, the run fails as it would in a fresh process.
Checked on torch 2.11 and 2.13.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

_COUNT = "_cuda_getDeviceCount"


@contextlib.contextmanager
def no_devices() -> Iterator[None]:
    """Inside, PyTorch counts 0 devices and does not ask CUDA."""
    home: Any = sys.modules.get("torch._C")
    count = getattr(home, _COUNT, None)
    if count is None:
        yield
        return
    setattr(home, _COUNT, lambda: 0)
    try:
        yield
    finally:
        setattr(home, _COUNT, count)


def is_bad_fork() -> bool:
    """Whether CUDA was in use when this process was forked, so that it cannot be used here."""
    return bool(getattr(sys.modules.get("torch._C"), "_cuda_isInBadFork", bool)())
