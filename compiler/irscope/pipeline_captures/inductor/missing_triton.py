"""Whether kernels can be generated for a GPU that is not here: that needs the package triton, which most lack on a CPU."""

from __future__ import annotations

import importlib.util
import sys

from irscope.pipelines.base import Package, pip_command

NEEDS = Package("triton", "triton>=3.6,<3.10")
"""What the extra ``targets`` of pyproject.toml asks for."""


def why_missing(platform: str = sys.platform) -> str:
    """Why the run's interpreter generates no code for a GPU, and what to do; empty if it has triton."""
    if importlib.util.find_spec("triton") is not None:
        return ""
    if platform != "linux":
        return "Code for a GPU needs the package triton, which there is for Linux only: run the script there."
    command = pip_command(sys.executable, [NEEDS])
    return f"Code for a GPU needs the package triton. To install it: {command}"
