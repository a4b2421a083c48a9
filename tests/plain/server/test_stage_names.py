"""Where the names of a text are made and used, on what Triton compiled on a real H100."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope_server.stages.names import names_in, names_in_output_code

H100 = Path(__file__).parents[2] / "triton_h100" / "axpy_kernel"


@pytest.mark.parametrize(
    ("language", "file", "use", "name", "made"),
    [
        ("mlir", "ttir", "%x_6 = tt.load %x_5, %mask_4", "%mask_4", "%mask_4 = arith.cmpi"),
        ("mlir", "ttir", "%offsets_3 = arith.addi", "%offsets_2", "%offsets_2 = tt.splat"),
        ("mlir", "ttir", "%x = tt.splat %x_ptr", "%x_ptr", "tt.func public @axpy_kernel"),
        ("mlir", "ttir", "arith.addf %total_9", "%total_9", "^bb0(%total_9"),
        ("mlir", "ttir", "%mask = tt.splat %n : i32 -> tensor<512xi32> loc(#loc32)", "#loc32", "#loc32 = loc("),
        ("mlir", "ttgir", "%cst = arith.constant", "#blocked", "#blocked = #ttg.blocked"),
        ("llvm", "llir", "%40 = fadd float %39", "%39", "%39 = fadd"),
        ("llvm", "llir", "%39 = fadd float", "!16", "!16 = !DILocation"),
        (
            "llvm",
            "llir",
            "%29 = getelementptr float, ptr addrspace(1) %1,",
            "%1",
            "define ptx_kernel void @axpy_kernel",
        ),
        ("ptx", "ptx", "shl.b32 \t%r19, %r18, 9", "%r18", "mov.u32 \t%r18, %ctaid.x"),
        ("ptx", "ptx", "ld.param.b64 \t%rd4, [axpy_kernel_param_0]", "axpy_kernel_param_0", "axpy_kernel_param_0"),
        ("sass", "nvdisasm", "FADD R16, R3, R6 ;", "R3", "FADD R3, R5, R4"),
        ("python", "text", "x = tl.load(x_ptr + offsets", "offsets", "offsets = tl.program_id(0)"),
        ("python", "text", "x = tl.load(x_ptr + offsets", "x_ptr", "def axpy_kernel("),
    ],
)
def test_definitions(language: str, file: str, use: str, name: str, made: str) -> None:
    rows = (H100 / f"kernel.{file}").read_text().split("\n")
    index = names_in(rows, language)
    line = next(n for n, row in enumerate(rows) if use in row)
    column = rows[line].index(use) + use.rindex(name) if name in use else rows[line].rindex(name)
    one = index.at(line, column)
    assert one is not None and one.name == name, (rows[line], one)
    definition = index.definition(one)
    assert definition is not None and made in rows[definition.line], definition
    references = index.references(one)
    assert one in references and definition in references
    assert all(rows[o.line][o.start : o.end] == name for o in references)


def test_a_temporary_of_one_loop_is_not_that_of_the_next() -> None:
    rows = ["auto tmp0 = a;", "auto tmp1 = tmp0;", "{", "    auto tmp0 = b;", "    c = tmp0 + tmp0;", "}"]
    index = names_in(rows, "cpp")
    second = index.at(4, 8)
    assert second is not None
    assert [(o.line, o.start) for o in index.references(second)] == [(3, 9), (4, 8), (4, 15)]
    first = index.at(1, 12)
    assert first is not None and [o.line for o in index.references(first)] == [0, 1]


def test_names_in_a_kernels_text_are_not_those_of_the_output_code() -> None:
    rows = ["k = async_compile.cpp(r'''", "  auto buf0 = 1;", "  x(buf0);", "''')", "buf0 = empty()", "k(buf0)"]
    index = names_in_output_code(rows, [(0, 3, "cpp")])
    inside, outside = index.at(2, 4), index.at(5, 2)
    assert inside is not None and outside is not None
    assert [o.line for o in index.references(inside)] == [1, 2]
    assert [o.line for o in index.references(outside)] == [4, 5]
    call = index.at(5, 0)
    assert call is not None and [o.line for o in index.references(call)] == [0, 5]


def test_comments_strings_and_unknown_languages_have_no_names() -> None:
    rows = ['    add: "f32[2]" = mul + 1  # add', "    # File: add"]
    assert [(o.line, o.name) for o in [names_in(rows, "python").at(0, 5)] if o] == [(0, "add")]
    assert names_in(rows, "python").at(0, 32) is None and names_in(rows, "python").at(1, 13) is None
    assert names_in(["%a = b"], "klingon").at(0, 0) is None
