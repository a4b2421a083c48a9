"""The calls and the kernels in the C++ that AOTInductor writes."""

from __future__ import annotations

from irscope.ir.cpp_wrapper import Call, calls_in, kernels_of
from irscope.ir.kernels import KernelSource
from irscope.protocol import StageRef
from irscope.provenance.elements import items_of
from irscope.provenance.statements import arguments_in, arguments_of

WRAPPER = """\
extern "C"  void  cpp_fused_relu_0(float* in_out_ptr0);
    void* cpp_fused_relu_0{nullptr};
    AtenTensorHandle buf0_handle;
    // [Provenance debug handles] aoti_torch_cpu_addmm_out:1
    static constexpr int64_t int_array_2[] = {8L, 16L};
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf0, first_bias, arg0_1, 1L, 1L));
    // [Provenance debug handles] cpp_fused_relu_0:2
    cpp_fused_relu_0((float*)(buf1.data_ptr()), (const float*)(buf0.data_ptr()), 16L);
    // [Provenance debug handles] torch.ops.mylib.twice.default:3
    AtenTensorHandle buf3_handle;
    aoti_torch_proxy_executor_call_function(proxy_executor, 0, 0, nullptr, 2, tensors);
    // [Provenance debug handles] aoti_torch_cpu_addmm_out:4
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf4, buf3, buf1, 1L, 1L));
    aoti_torch_cpu_scatter_reduce_two_out(buf4, buf4,0,arg1_1,buf3, "amax",1);
"""
KERNELS = """\
// Triton kernels are embedded as comments in wrapper.cpp

#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_relu_0(float* in_out_ptr0,
                       float* out_ptr0)
{
    {
    }
}

#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_mul_1(const float* in_ptr0)
{
}

// Compile cmd
// g++ kernel.cpp
"""


def test_calls_are_at_the_lines_that_make_them() -> None:
    assert calls_in(WRAPPER) == [
        Call("aoti_torch_cpu_addmm_out", 1, 6),
        Call("cpp_fused_relu_0", 2, 8),
        Call("torch.ops.mylib.twice.default", 3, 11),
        Call("aoti_torch_cpu_addmm_out", 4, 13),
        Call("aoti_torch_cpu_scatter_reduce_two_out", None, 14),
    ]


def test_each_kernel_is_a_separate_file() -> None:
    kernels = kernels_of(WRAPPER, KERNELS)
    assert [(kernel.name, kernel.language) for kernel in kernels] == [
        ("cpp_fused_relu_0", "cpp"),
        ("cpp_fused_mul_1", "cpp"),
        ("aoti_torch_cpu_addmm_out", "extern"),
        ("torch.ops.mylib.twice.default", "extern"),
        ("aoti_torch_cpu_scatter_reduce_two_out", "extern"),
    ]
    assert kernels[1].text == (
        '#include <torch/csrc/inductor/cpp_prefix.h>\nextern "C"  void  cpp_fused_mul_1(const float* in_ptr0)\n{\n}\n'
    )
    assert kernels[0].text.endswith("    {\n    }\n}\n")


def test_calls_come_from_the_nodes_that_have_their_handle() -> None:
    calls = [
        {"kernel": "aoti_torch_cpu_addmm_out", "handle": 4, "nodes": ["op2"]},
        {"kernel": "aoti_torch_cpu_addmm_out", "handle": 1, "nodes": ["op0"]},
        {"kernel": "aoti_torch_cpu_scatter_reduce_two_out", "handle": None, "nodes": ["op3"]},
    ]
    items = items_of(StageRef("0/0/cpp-wrapper", "cpp-wrapper", "cpp", 0), WRAPPER, {"calls": calls})
    found = {item.element.name: (item.element.line, item.ancestors) for item in items.items}
    assert found["aoti_torch_cpu_addmm_out:1"] == (6, ("op0",))
    assert found["aoti_torch_cpu_addmm_out:2"] == (13, ("op2",))
    assert found["aoti_torch_cpu_scatter_reduce_two_out:1"] == (14, ("op3",))


def test_arguments_of_a_call_are_the_buffers_behind_the_casts() -> None:
    call = arguments_in(WRAPPER.split("\n")[7])
    assert call == ["buf1", "buf0", "16L"]
    text = kernels_of(WRAPPER, KERNELS)[0].text
    assert arguments_of(text, call) == {"in_out_ptr0": "buf1", "out_ptr0": "buf0"}


TRITON_WRAPPER = """\
static inline void call_triton_poi_fused_relu_0(
    const in_out_ptr0_type_& in_out_ptr0,
){
    launchKernel(kernels_.triton_poi_fused_relu_0, grid_0, grid_1, grid_2, 2, 8, kernel_args_, stream_);
}
    // [Provenance debug handles] aoti_torch_cuda_mm_out:1
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mm_out(buf0, arg1_1, a_weight));
    // [Provenance debug handles] triton_poi_fused_relu_0:2
    static constexpr int64_t int_array_2[] = {8L, 64L};
    call_triton_poi_fused_relu_0(buf0, 512L, this->device_idx_, stream, kernels, this->cubin_dir_);
"""


def test_a_triton_kernel_is_called_through_its_function_and_has_its_own_text() -> None:
    """As AOTInductor of torch 2.11 wrote it for an H100, shortened."""
    assert calls_in(TRITON_WRAPPER) == [
        Call("aoti_torch_cuda_mm_out", 1, 7),
        Call("triton_poi_fused_relu_0", 2, 10),
    ]
    tuned = [KernelSource("triton_poi_fused_relu_0", "triton", "@triton.jit\n")]
    assert kernels_of(TRITON_WRAPPER, "// Triton kernels are embedded as comments in wrapper.cpp\n", tuned) == [
        *tuned,
        KernelSource("aoti_torch_cuda_mm_out", "extern", ""),
    ]
