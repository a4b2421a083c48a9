"""Innermost loops of machine code, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from irscope.lowering import loops
from irscope.lowering.loops import Loop, innermost_loops

SASS = """\
.text.kernel:
/*0000*/       MOV R1, c[0x0][0x28] ;
.L_x_1:
/*0010*/       IADD3 R2, R2, 0x1, RZ ;
.L_x_0:
/*0020*/       LDG.E R4, [R2.64] ;
/*0030*/       FADD R5, R5, R4 ;
/*0040*/   @P0 BRA `(.L_x_0) ;
/*0050*/   @P1 BRA `(.L_x_1) ;
.L_x_2:
/*0060*/       BRA `(.L_x_2);
"""
PTX = """\
$L__BB0_2:                              // %.lr.ph
	.loc	1 30 4
	ld.global.b32 	%r1, [%rd1];
	add.f32 	%f1, %f1, %r1;
	@%p1 bra 	$L__BB0_2;
"""
AMDGCN = """\
.LBB0_1:
	global_load_dword v1, v[2:3], off
	s_cbranch_scc1 .LBB0_1
"""
SOURCE = """\
void kernel(const float* in_ptr0, float* out_ptr0)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(8L); x0+=static_cast<int64_t>(1L))
        for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(64L); x1+=static_cast<int64_t>(16L))
            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + x1);
}
"""
ASSEMBLY = """\
kernel:
.L3:
	xorl	%eax, %eax
.L2:
	vmovups	(%rdi,%rax), %zmm0
	vmovups	%zmm0, (%rsi,%rax)
	addq	$64, %rax
	cmpq	$256, %rax
	jne	.L2
	jne	.L3
.L9:
	call	_Unwind_Resume@PLT
	jmp	.L9
"""
LINES: Any = {"lines": [[5, 5], [6, 5], [3, 3]]}
MCA = """\
Total Cycles:      150
Cycles with backend pressure increase [ 80.91% ]
Throughput Bottlenecks:
  Resource Pressure       [ 80.5% ]
  - SKXPort0  [ 73.60% ]
  Data Dependencies:      [ 0.00% ]
"""


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [(SASS, "sass", (5, 8, 3, 4.0)), (PTX, "ptx", (1, 5, 3, 4.0)), (AMDGCN, "amdgcn", (1, 3, 2, 2.0))],
)
def test_loops_of_a_gpu(text: str, kind: str, found: tuple[int, int, int, float]) -> None:
    """A block of 512 elements and four warps: four elements for each of 128 threads, or two for each of 256."""
    data = {"config": "XBLOCK: 2, R0_BLOCK: 256, num_warps: 4, num_stages: 1"}
    assert innermost_loops(text, kind, data, "tl.sum(x, 1)") == [Loop(found[0], found[1], found[2], found[3], None, ())]
    (product,) = innermost_loops(text, kind, data, "acc = tl.dot(a, b, acc)")
    assert product.elements is None and innermost_loops(text, kind, None, "")[0].instructions == found[2]


def test_a_vectorized_loop_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def output_of(command: Any, text: str) -> str:
        asked.append((command, text))
        return MCA

    monkeypatch.setattr(loops, "output_of", output_of)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/llvm-mca")
    (loop,) = innermost_loops(ASSEMBLY, "assembly", LINES, SOURCE, "avx512")
    assert loop == Loop(4, 9, 5, 16, 1.5, (("Resource Pressure", 80.5),))
    assert (
        loop.words
        == "innermost loop: 5 instructions, 0.312 for each element; llvm-mca: 1.5 cycles, waits for resource pressure 80.5 %"
    )
    (command, rows), *_ = asked
    assert "-mcpu=skylake-avx512" in command and rows.startswith(".L2:") and rows.endswith("jne\t.L2")
    monkeypatch.setattr("shutil.which", lambda _: None)
    (loop,) = innermost_loops(ASSEMBLY, "assembly", LINES, SOURCE)
    assert (loop.cycles, loop.waits) == (None, ())
    # Unrolled by the compiler: one pass is more than a step of the loop as it is written.
    (loop,) = innermost_loops(ASSEMBLY.replace("$64", "$1024"), "assembly", LINES, SOURCE)
    assert loop.elements is None
