"""Something that a worker takes for PyTorch and imports at once, for tests of the life of workers: no capture sees a thing."""

from __future__ import annotations

import time
from pathlib import Path

from irscope.internals.first_compile import MODULES
from support import Instant, late

SCRIPT = """\
import os
import torch


@torch.compile
def f(x):
    return x


print("parent", os.getppid(), flush=True)
"""
ENDLESS = """
import os, time
import torch

if os.fork() == 0:  # one that leaves its session and its parent
    os.setsid()
    if os.fork():
        os._exit(0)
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    time.sleep(0.05)
"""
"""It writes the process ID of itself and of its daemon."""
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


def at_work(folder: Path) -> list[int]:
    """The script's process and its daemon, when both run."""
    begun = Instant()
    while True:
        pids = (folder / "pids").read_text().split() if (folder / "pids").exists() else []
        if len(pids) == 2:
            return [int(pid) for pid in pids]
        assert not late(begun, 60), "the script has not begun"
        time.sleep(0.02)
