"""Triton kernels of AOTInductor, from records such as torch 2.11 wrote on an H100, shortened."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.pipeline_captures.aotinductor.capture import AotInductorCapture
from irscope.protocol import CaptureGap, Kernel, Lane, RunRequest

NAME = "triton_poi_fused_relu_0"
TEXT = f"""\
import triton

@triton.jit
def {NAME}(in_out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tl.store(in_out_ptr0, 0)
"""
TUNING = f"""\
from torch._inductor.async_compile import AsyncCompile

async_compile = AsyncCompile()

{NAME} = async_compile.triton('{NAME}', '''
{TEXT}''', device_str='cuda')

async_compile.wait(globals())
del async_compile

{NAME}.run(buf0, 512, stream=stream0)
"""
WRAPPER = f"""\
    // [Provenance debug handles] aoti_torch_cuda_mm_out:1
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mm_out(buf0, arg1_1, a_weight));
    // [Provenance debug handles] {NAME}:2
    call_{NAME}(buf0, 512L, this->device_idx_, stream, kernels, this->cubin_dir_);
"""


class Written(RunBook):
    """Keeps what a capture writes, without a store."""

    def __init__(self) -> None:
        super().__init__(RunRequest("r", "script.py", (), Lane.DEEP, "store.db"), lambda message: None)
        self.stages: dict[str, str] = {}
        self.kernels: list[Kernel] = []
        self.gaps: list[CaptureGap] = []

    def put_stage(self, compile: str, name: str, text: str, *rest: Any, **more: Any) -> str:
        self.stages[id := f"{compile}/{name}"] = text
        return id

    def write_stage(self, compile: str, name: str, id: str, text: str | None, *rest: Any, **more: Any) -> None:
        self.stages[id] = text or ""

    def put_kernels(self, kernels: Iterable[Kernel]) -> None:
        self.kernels = list(kernels)

    def gap(self, gap: CaptureGap) -> None:
        self.gaps.append(gap)


def told(metadata: dict[str, Any], payload: str) -> logging.LogRecord:
    record = logging.LogRecord("torch.__trace", logging.DEBUG, "", 0, "", (), None)
    record.__dict__.update(metadata=metadata, payload=payload)
    return record


def test_kernels_are_known_before_they_are_compiled_and_in_the_wrapper() -> None:
    book = Written()
    capture = AotInductorCapture(book)
    [handler] = capture.handlers()
    with book.compiling("0/0"):
        handler.emit(told({"artifact": {"name": "inductor_autotune_at_compile_time_code"}}, TUNING))
        assert book.stages == {"0/0/tuning-code": TUNING, f"0/0/kernel/{NAME}": TEXT}
        assert [(kernel.name, kernel.language) for kernel in book.kernels] == [(NAME, "triton")]
        handler.emit(told({"graph_dump": {"name": "inductor_aot_wrapper_code", "type": "cpp"}}, WRAPPER))
        handler.emit(told({"graph_dump": {"name": "inductor_aot_kernel_code", "type": "cpp"}}, "// none\n"))
    assert book.stages[f"0/0/kernel/{NAME}"] == TEXT
    assert [(kernel.name, kernel.language, kernel.stage) for kernel in book.kernels] == [
        (NAME, "triton", f"0/0/kernel/{NAME}"),
        ("aoti_torch_cuda_mm_out", "extern", "0/0/cpp-wrapper"),
    ]
    assert book.gaps == []


def test_kernels_that_were_not_tuned_are_a_gap() -> None:
    book = Written()
    [handler] = AotInductorCapture(book).handlers()
    with book.compiling("0/0"):
        handler.emit(told({"graph_dump": {"name": "inductor_aot_wrapper_code", "type": "cpp"}}, WRAPPER))
        handler.emit(told({"graph_dump": {"name": "inductor_aot_kernel_code", "type": "cpp"}}, "// none\n"))
    assert [gap.what for gap in book.gaps] == ["Triton kernels of the package"]
