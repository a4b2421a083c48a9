"""Keeps CUDA usable in forks.

``torch.cuda.is_available()`` counts the devices through CUDA's runtime, and from then on no fork of the process can use
CUDA.  Inductor asks it while it is imported (torch 2.11: ``torch/_inductor/runtime/benchmarking.py``), and so do
packages.  With ``PYTORCH_NVML_BASED_CUDA_CHECK=1`` torch asks the driver's management library instead, which leaves
CUDA alone.  Seen on an H100: without it every compile in a fork fails.  Where there is no driver there is no such
library either, and torch goes back to the runtime; then it is told that there is no device, which is so.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

from irscope.internals.cuda_devices import is_bad_fork, no_devices

_NAME = "PYTORCH_NVML_BASED_CUDA_CHECK"


_DRIVER = "libcuda.so.1"


@contextlib.contextmanager
def not_counted() -> Iterator[None]:
    """Where torch is built for CUDA and there is no driver, what is imported inside gets 0 devices without a count."""
    torch = sys.modules["torch"]
    with no_devices() if torch.version.cuda is not None and not _has_driver() else contextlib.nullcontext():
        yield


def _has_driver() -> bool:
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """What is imported inside may ask whether there is a GPU."""
    before = os.environ.get(_NAME)
    os.environ[_NAME] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_NAME, None)
        else:
            os.environ[_NAME] = before


def is_without_accelerators() -> bool:
    """Whether torch can use none here: it is built for none, or for CUDA only and there is no driver."""
    version = sys.modules["torch"].version
    if getattr(version, "hip", None) is not None or getattr(version, "xpu", None) is not None:
        return False
    return version.cuda is None or not _has_driver()


def is_unusable_in_forks() -> bool:
    """Whether CUDA is initialized here, or the driver counts as used because the devices were counted."""
    torch = sys.modules["torch"]
    if torch.cuda.is_initialized():
        return True
    if torch.version.cuda is None and torch.version.hip is None:
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(int(is_bad_fork()))
    return os.waitpid(pid, 0)[1] != 0
