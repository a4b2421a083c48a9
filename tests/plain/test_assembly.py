"""A C++ kernel's assembly, cleaned: what is kept, and each instruction's line as binutils read it from the object."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from binutils import functions_in, lines_by_binutils, rows_of_code
from irscope.ir.assembly import FLAGS, clean_assembly
from irscope.ir.line_tables import KernelText, Lines

HEADER = """\
#include <cmath>
template <class T> inline T deepest(T x) { return x * x + T(3); }
template <class T> inline T inner(T x) {
    T y = deepest(x);
    return y / T(7);
}
"""
KERNEL = """\
#include "prefix.h"
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    auto within = [](float x) {
        return inner(x);
    };
    for (long i = 0; i < 64; i++)
    {
        auto tmp0 = in_ptr0[i];
        auto tmp1 = within(tmp0);
        auto tmp2 = std::exp(tmp1);
        out_ptr0[i] = inner(tmp2) + 0.25f;
    }
}
void unrelated(float* x) { x[0] = inner(x[1]); }
"""
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def compiled(folder: Path, kernel: str, *options: str) -> str:
    (folder / "prefix.h").write_text(HEADER)
    (folder / "kernel.cpp").write_text(kernel)
    command = ["g++", "kernel.cpp", "-O3", "-fPIC", "-shared", *options, *FLAGS, "-o", "-"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def cleaned(assembly: str, kernel: str) -> tuple[str, Lines]:
    return clean_assembly(assembly, KernelText("kernel.cpp", 1, kernel.count("\n") + 1), kernel)


@needs_compiler
def test_only_the_kernel_is_kept(tmp_path: Path) -> None:
    text, lines = cleaned(compiled(tmp_path, KERNEL), KERNEL)
    assert text.startswith("kernel:\n")
    assert "unrelated" not in text
    assert "expf" in text
    code = text[: text.index("\n\n")]  # then come the constants
    assert not re.search(r"^\s*\.(?:cfi|loc|file|type|p2align)|#|LBB|LFB", code, re.MULTILINE)
    targets = set(re.findall(r"\bj\w+\s+(\.L\w+)", code)) | set(re.findall(r"(\.LC\w+)\(%rip\)", code))
    assert targets == set(re.findall(r"^(\.L\w+):", text, re.MULTILINE))
    rows = text.split("\n")
    said = {KERNEL.split("\n")[line - 1].strip() for row, line in lines if "expf" in rows[row - 1]}
    assert said == {"auto tmp2 = std::exp(tmp1);"}


@needs_compiler
@pytest.mark.skipif(shutil.which("addr2line") is None or shutil.which("objdump") is None, reason="no binutils")
@pytest.mark.parametrize("options", [(), ("-gdwarf-4",), ("-O1",), ("-fopenmp",)], ids=" ".join)
def test_lines_are_those_of_the_object(options: tuple[str, ...], tmp_path: Path) -> None:
    """The assembler's own table, with what was inlined where, read by ``addr2line -i``."""
    kernel = KERNEL.replace("    for", "    #pragma omp parallel for\n    for", 1) if "-fopenmp" in options else KERNEL
    assembly = compiled(tmp_path, kernel, *options)
    text, lines = cleaned(assembly, kernel)
    theirs = lines_by_binutils(tmp_path, assembly, functions_in(text))
    assert [dict(lines).get(row) for row in rows_of_code(text)] == theirs
    assert len({line for line in theirs if line}) >= 4


def test_assembly_of_something_else() -> None:
    with pytest.raises(ValueError, match="has no function"):
        cleaned("\t.text\nmain:\n\tret\n\t.cfi_endproc\n", KERNEL)
