"""What a predicted kernel uses that it should not: looked at in the child that has compiled it."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.lowering.resources import lacks_fast_instruction, resources_of, spilled_bytes
from irscope.lowering.triton_tools import tools
from irscope.pipeline_captures.inductor.triton import TritonKernel
from irscope.pipeline_captures.inductor.triton_stages import lowered_stages
from irscope.targets.catalogue import Target
from irscope.vocabulary.units import size


def spills_of(files: Mapping[str, str]) -> dict[str, int]:
    """What the binary of an NVIDIA GPU does not say by itself: ``spilled`` bytes; empty if it cannot be asked."""
    if "cubin" not in files or "ptx" not in files:
        return {}
    with open(files["cubin"], "rb") as binary, open(files["ptx"], encoding="utf-8", errors="replace") as text:
        try:
            spilled = spilled_bytes(binary.read(), text.read(), tools())
        except ValueError:
            return {}
    return {} if spilled is None else {"spilled": spilled}


def slow_kernel(kernel: TritonKernel, source: str, target: Target) -> tuple[str, str] | None:
    """The code of a finding, and what is slow about a kernel, in words; None if nothing is.  Raises ValueError."""
    stages = {stage.name: stage for stage in lowered_stages(kernel, "", source)}
    assembly = stages.get("ptx") or stages.get("amdgcn")
    if assembly is None or "binary" not in stages:
        return None
    found = resources_of(stages["binary"].data, stages["binary"].text, assembly.text)
    if found.spilled:
        return (
            "register-spill",
            f"keeps {size(found.spilled)} of each thread in memory: {found.registers} registers are too few",
        )
    if why := lacks_fast_instruction(found, source, target):
        return "slow-matrix-product", f"multiplies matrices with {why}"
    return None
