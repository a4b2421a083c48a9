"""What a compiled Triton kernel uses of a GPU: registers, stack, shared memory, and which instruction multiplies matrices.

From what the run kept: the binary, Triton's metadata, and PTX or AMDGCN.  Spilled bytes of an NVIDIA GPU are what
``ptxas -v`` says; a kernel without a stack spills nothing.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from typing import Any

from irscope.ir import cubin
from irscope.lowering.tools import LoweringError, output_of
from irscope.system.commands import temporary_folder
from irscope.targets.catalogue import Target
from irscope.targets.occupancy import Occupancy, occupancy
from irscope.vocabulary.records import dataclass

_MATRIX = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma|v_(?:s?mfmac?|s?wmmac?))[\w.:]*")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_ARCHITECTURE = re.compile(r"^\.target (sm_(\d+)\w*)", re.MULTILINE)
_BLACKWELL = 100
_AMD = {"registers": "vgpr_count", "stack": "private_segment_fixed_size", "shared": "group_segment_fixed_size"}
_WORD = 4


@dataclass(frozen=True)
class Resources:
    """What one kernel uses.

    Args:
        registers: Registers of a thread; on AMD's GPUs vector registers.
        spilled: Bytes that a thread stores because it has too few registers; None: not known.
        stack, shared: Bytes of a thread's stack, and of a block's shared memory.
        warps: Warps of a block.
        matrix: The instruction that multiplies matrices, the most frequent one; empty: none.
    """

    registers: int
    spilled: int | None
    stack: int
    shared: int
    warps: int
    matrix: str

    def occupancy_on(self, target: Target) -> Occupancy | None:
        """None if it cannot be told."""
        return occupancy(target, self.warps, self.registers, self.shared)


def resources_of(binary: Mapping[str, Any], metadata: str, assembly: str) -> Resources:
    """What a kernel uses.

    Args:
        binary, metadata: The data and the text of its stage ``binary``.
        assembly: Its PTX or AMDGCN.

    Raises ValueError if they are damaged.
    """
    known = json.loads(metadata)
    instructions = Counter(match[0] for match in _MATRIX.finditer(assembly))
    matrix = min(instructions, key=lambda name: (-instructions[name], name), default="")
    warps, shared = int(known.get("num_warps", 0)), int(known.get("shared", 0))
    if binary.get("format") == "hsaco":
        number = {name: _amd(assembly, field) for name, field in _AMD.items()}
        stored = _WORD * _amd(assembly, "vgpr_spill_count")
        return Resources(number["registers"], stored, number["stack"], max(shared, number["shared"]), warps, matrix)
    facts = cubin.facts_of(base64.b64decode(str(binary.get("base64", "")), validate=True))
    spilled: int | None = binary.get("spilled") if facts.stack else 0
    return Resources(facts.registers, spilled, facts.stack, shared, warps, matrix)


def _amd(assembly: str, field: str) -> int:
    found = re.search(rf"\.{field}:\s*(\d+)", assembly)
    return int(found[1]) if found else 0


def spilled_bytes(content: bytes, ptx: str, tools: Mapping[str, str]) -> int | None:
    """The larger of the bytes that a kernel's threads store and load again, by ``ptxas -v``; None: it cannot be asked.

    Args:
        content: The kernel's binary.  One without a stack spills nothing, so nothing is asked.
        tools: Paths of Triton's tools by name (`irscope.lowering.triton_tools`).
    """
    if not cubin.facts_of(content).stack:
        return 0
    architecture = _ARCHITECTURE.search(ptx)
    name = "ptxas-blackwell" if architecture and int(architecture[2]) >= _BLACKWELL else "ptxas"
    program = tools.get(name) or shutil.which("ptxas")
    if architecture is None or not program:
        return None
    with temporary_folder() as work:
        with open(os.path.join(work, "kernel.ptx"), "w", encoding="utf-8") as file:
            file.write(ptx)
        command = [program, "-v", f"--gpu-name={architecture[1]}", "kernel.ptx", "-o", "kernel.cubin"]
        try:
            said = output_of(command, cwd=work, of_errors=True)
        except LoweringError:
            return None
    return max((int(number) for pair in _SPILLS.findall(said) for number in pair), default=0)


_FAST = {"9": "wgmma", "10": "tcgen05"}
"""By major compute capability: what only this architecture's fast instructions begin with."""


def lacks_fast_instruction(found: Resources, source: str, target: Target) -> str:
    """Why a kernel that multiplies matrices is slower than the target allows, in words; empty: it is not."""
    if "tl.dot(" not in source and "tl.dot_scaled(" not in source:
        return ""
    fast = "" if target.kind != "cuda" else _FAST.get(target.architecture.partition(".")[0], "")
    if not found.matrix:
        return "no instruction for matrices"
    return f"{found.matrix} and not {fast}" if fast and not found.matrix.startswith(fast) else ""
