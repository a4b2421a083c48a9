"""The kinds of stages of TVM."""

from __future__ import annotations

from irscope.pipelines.export.stages import DECOMPOSED_PROGRAM, FIRST
from irscope.vocabulary.stages import Part, Role, StageGroup, StageKind

TVM = StageGroup("TVM")
_NAMES = "relax"


def _graph(name: str, title: str, rank: int, is_lowered: bool = False) -> StageKind:
    return StageKind(
        name, title, "python", Role.GRAPH, rank, part=Part.INFERENCE, group=TVM, names=_NAMES, is_lowered=is_lowered,
        is_compared=True,
    )  # fmt: skip


RELAX = _graph("relax", "Relax", 5)
LOWERED = _graph("relax-lowered", "Relax after passes", 6, is_lowered=True)
MODULE = StageKind("tvmscript", "Text of Relax after passes", "python", Role.FACTS, aside=LOWERED.name, group=TVM)
KERNEL = StageKind("tir", "TIR of a function", "python", Role.KERNEL, 7)
LAST_TIR = StageKind("tir-lowered", "TIR after passes", "python", Role.LOWERED, 8)
LLVM = StageKind("tvm-llvm", "LLVM IR", "llvm", Role.LOWERED, 9)
ASSEMBLY = StageKind("tvm-assembly", "Assembly", "asm", Role.LOWERED, 10, is_machine_code=True)
CUDA = StageKind("tvm-cuda", "CUDA source for a GPU, not compiled", "cuda-cpp", Role.LOWERED, 9, short="CUDA source")
STAGES = (*FIRST, DECOMPOSED_PROGRAM, RELAX, LOWERED, MODULE, KERNEL, LAST_TIR, LLVM, ASSEMBLY, CUDA)
