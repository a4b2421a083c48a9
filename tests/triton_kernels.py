"""The two kernels of `triton_h100`: their texts, and what must lead to what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from irscope.ir.line_tables import KernelText

FOLDER = Path(__file__).parent / "triton_h100"
KINDS = ("ttir-unoptimized", "ttir", "ttgir", "llir", "ptx")


@dataclass(frozen=True)
class Example:
    """A kernel with what its instructions must come from: part of an instruction → part of the source line."""

    folder: str
    name: str
    file: str
    first_line: int
    came_from: dict[str, list[tuple[str, str]]]

    def text(self, kind: str) -> str:
        return (FOLDER / self.folder / f"kernel.{kind}").read_text(encoding="utf-8")

    @property
    def source(self) -> list[str]:
        return self.text("text").split("\n")

    @property
    def place(self) -> KernelText:
        return KernelText(self.file, self.first_line, len(self.source))


AXPY = Example(
    "axpy_kernel",
    "axpy_kernel",
    "/home/user/gpu.py",
    12,
    {
        "ttir-unoptimized": [("tt.get_program_id", "tl.program_id"), ("tt.load %x", "tl.load(x_ptr")],
        "ttir": [("tt.store", "tl.store("), ("arith.cmpi slt", "offsets < n")],
        "ttgir": [("tt.store", "tl.store("), ("tt.load %y", "tl.load(y_ptr"), ("arith.mulf", "scale(x, factor)")],
        "llir": [
            ("call i32 @llvm.nvvm.shfl", "tl.sum("),
            ("st.global", "tl.store("),
            ("fmul float", "scale(x, factor)"),
        ],
        "ptx": [
            ("shfl.sync", "tl.sum("),
            ("st.global", "tl.store("),
            ("ld.global", "tl.load("),
            ("%ctaid", "program_id"),
        ],
        "nvdisasm": [
            ("SHFL.BFLY", "tl.sum("),
            ("STG.E", "tl.store("),
            ("LDG.E", "tl.load("),
            ("SR_CTAID", "program_id"),
        ],
    },
)
GENERATED = Example(
    "per_fused_mul_sum",
    "triton_per_fused_mul_sum_1",
    "/cache/ps/cpstppefqcs.py",
    2,
    {
        "ttir-unoptimized": [("tt.load", "tl.load(in_ptr0"), ("tt.store", "tl.store(out_ptr0")],
        "ttir": [("tt.load", "tl.load(in_ptr0"), ("tt.store", "tl.store(out_ptr0")],
        "ttgir": [("tt.load", "tl.load(in_ptr0"), ("tt.store", "tl.store(out_ptr0")],
        "llir": [("call i32 @llvm.nvvm.shfl", "tl.sum("), ("ld.global", "tl.load("), ("st.global", "tl.store(")],
        "ptx": [("shfl.sync", "tl.sum("), ("ld.global", "tl.load("), ("st.global", "tl.store(")],
        "nvdisasm": [("SHFL.BFLY", "tl.sum("), ("LDG.E", "tl.load("), ("STG.E", "tl.store(")],
    },
)
EXAMPLES = (AXPY, GENERATED)


def strangers(text: str, lines: list[tuple[int, int]], example: Example, kind: str) -> list[tuple[str, list[str]]]:
    """Instructions that do not come from where they must; one that is not there at all is a stranger, too."""
    table: dict[int, list[str]] = {}
    for row, line in lines:
        table.setdefault(row, []).append(example.source[line - 1].strip())
    wrong = []
    for part, expected in example.came_from[kind]:
        rows = [number for number, row in enumerate(text.split("\n"), 1) if part in row]
        wrong += [(part, table.get(row, [])) for row in rows if not any(expected in s for s in table.get(row, []))]
        if not rows:
            wrong.append((part, ["no such instruction"]))
    return wrong
