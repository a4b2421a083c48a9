"""Something that a worker takes for PyTorch and imports at once, for tests of the life of workers: no capture sees a thing."""

from __future__ import annotations

from pathlib import Path

from irscope.internals.first_compile import MODULES

SCRIPT = """\
import os
import torch


@torch.compile
def f(x):
    return x


print("parent", os.getppid(), flush=True)
"""
_TORCH = """\
from types import SimpleNamespace
from torch import version

cuda = SimpleNamespace(is_initialized=lambda: False)
default_generator = SimpleNamespace(seed=int)


def compile(function):
    return function
"""


def light_torch(folder: Path, at_import: str = "") -> dict[str, str]:
    """Writes it into a folder; the variables with which an interpreter finds it.  ``at_import``: what it does then."""
    texts = {"torch/__init__.py": at_import + _TORCH, "torch/version.py": "__version__ = '2.13.0'\ncuda = hip = None\n"}
    for name in MODULES:
        path = name.replace(".", "/")
        texts.setdefault(f"{path}/__init__.py", "")
        texts.setdefault(f"{path.rpartition('/')[0]}/__init__.py", "")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {"PYTHONPATH": str(folder)}
