"""What a compiled kernel uses: read from its binary, and compared with what ptxas says of the same kernel."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_kernel, an_outcome
from irscope.cli.main import main
from irscope.events.trace import Record
from irscope.findings.kinds import slow_kernel
from irscope.findings.moment import Moment
from irscope.ir import cubin
from irscope.lowering.resources import Resources, lacks_fast_instruction, resources_of, spilled_bytes
from irscope.protocol import Lane, Origin, StageRef
from irscope.store.store import Store
from irscope.targets.catalogue import catalogue
from irscope.targets.occupancy import occupancy

TOOLS = Path(sys.prefix) / "triton" / "site-packages" / "triton" / "backends" / "nvidia" / "bin"
METADATA = json.dumps({"num_warps": 4, "shared": 2048})
AMDGCN = """\
	v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]
    .group_segment_fixed_size: 4096
    .private_segment_fixed_size: 12
    .vgpr_count:     90
    .vgpr_spill_count: 3
"""


def ptx(values: int, most: int) -> str:
    """A kernel of which so many numbers are needed at the same time, with at most so many registers."""
    names = range(values)
    loads = "".join(f"ld.global.cg.f32 %f{n}, [%rd1+{4 * n}];\n" for n in names)
    stores = "".join(f"st.global.cg.f32 [%rd1+{4 * n}], %f{values - 1 - n};\n" for n in names)
    head = f".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n.maxnreg {most}\n"
    return f"{head}{{\n.reg .f32 %f<{values}>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n{loads}bar.sync 0;\n{stores}ret;\n}}\n"


@pytest.mark.skipif(not TOOLS.is_dir(), reason="the package triton is not installed")
@pytest.mark.parametrize(("values", "most", "spills"), [(4, 32, False), (80, 128, False), (80, 32, True)])
def test_it_is_what_ptxas_says(tmp_path: Path, values: int, most: int, spills: bool) -> None:
    (tmp_path / "k.ptx").write_text(ptx(values, most))
    command = [str(TOOLS / "ptxas"), "-v", "--gpu-name=sm_90a", "k.ptx", "-o", "k.cubin"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    content = (tmp_path / "k.cubin").read_bytes()
    (registers,) = re.findall(r"Used (\d+) registers", said)
    stack, stored, loaded = map(int, re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", said))
    assert cubin.facts_of(content) == cubin.CubinFacts(int(registers), stack)
    tools = {name: str(TOOLS / name) for name in ("ptxas", "ptxas-blackwell")}
    assert spilled_bytes(content, ptx(values, most), tools) == max(stored, loaded)
    assert (stored > 0) is spills
    assert spilled_bytes(content, "no target", tools) == (None if spills else 0)


def test_a_damaged_binary() -> None:
    for content in (b"", b"\x7fELF", b"\x7fELF" + bytes(200), b"MZ" * 100):
        with pytest.raises(ValueError, match="binary"):
            cubin.facts_of(content)


def test_of_a_kernel_for_an_amd_gpu() -> None:
    found = resources_of({"format": "hsaco"}, METADATA, AMDGCN)
    assert found == Resources(90, 12, 12, 4096, 4, "v_mfma_f32_32x32x8_bf16")


# By NVIDIA's occupancy calculator for compute capability 9.0: 64 warps, 65,536 registers, 228 KiB of shared memory.
@pytest.mark.parametrize(
    ("warps", "registers", "shared", "expected"),
    [
        (4, 32, 0, (64, "warps")),
        (4, 33, 0, (48, "registers")),
        (4, 255, 0, (8, "registers")),
        (8, 128, 0, (16, "registers")),
        (4, 32, 114688, (8, "shared memory")),
        (1, 16, 0, (32, "blocks")),
    ],
)
def test_occupancy(warps: int, registers: int, shared: int, expected: tuple[int, str]) -> None:
    found = occupancy(catalogue().named("h100"), warps, registers, shared)
    assert found is not None and (found.warps, found.limit, found.most) == (*expected, 64)
    assert occupancy(catalogue().named("mi300x"), warps, registers, shared) is None


@pytest.mark.parametrize(
    ("target", "matrix", "why"),
    [
        ("h100", "wgmma.mma_async.sync", ""),
        ("h100", "mma.sync.aligned", "mma.sync.aligned and not wgmma"),
        ("a100", "mma.sync.aligned", ""),
        ("a100", "", "no instruction for matrices"),
        ("mi300x", "v_mfma_f32", ""),
    ],
)
def test_a_matrix_product_without_the_instruction_for_it(target: str, matrix: str, why: str) -> None:
    found = Resources(64, 0, 0, 0, 4, matrix)
    assert lacks_fast_instruction(found, "acc = tl.dot(a, b)", catalogue().named(target)) == why
    assert lacks_fast_instruction(found, "acc = a + b", catalogue().named(target)) == ""


def test_the_finding_is_at_the_line_of_the_kernel(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("def f(x):\n    return x @ x\n")
    slow: Any = (
        "register-spill",
        "keeps 64 B of each thread in memory",
        "0/0/h100/kernel/triton_0",
        (2, 3),
        (Origin(str(file), 2),),
    )
    (found,) = slow_kernel.detect(
        Moment(Record("signal", {}, "0/0", 0, ""), a_compile(file=str(file)), None, False), "h100", slow
    )
    assert (found.code, found.range.start.line) == ("register-spill", 2)
    assert (found.message, found.targets) == ("triton_0 keeps 64 B of each thread in memory.", ("h100",))
    assert found.explanation.startswith("In configuration 2 of 3.")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "250")
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/model.py", [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile())
        store.put_compile(run, a_compile(id="0/0/mi300x", target="mi300x"))
        kernel = "0/0/mi300x/kernel/triton_0"
        store.put_kernel(run, a_kernel(name="triton_0", compile="0/0/mi300x", stage=kernel, language="triton"))
        binary = {"format": "hsaco", "base64": base64.b64encode(b"x").decode(), "config": "XBLOCK: 64"}
        for position, (name, text, data) in enumerate([("amdgcn", AMDGCN, None), ("binary", METADATA, binary)]):
            stage = StageRef(f"{kernel}/{name}", name, "", 0, target="mi300x")
            store.put_stage(run, "0/0/mi300x", stage, text, position, data)
        store.set_outcome(run, an_outcome())
    assert main(["show", "--store", path, "--resources", "--target", "mi300x"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    assert row.split("  ")[0] == "triton_0" and row.endswith("v_mfma_f32_32x32x8_bf16") and " 90 " in row
    assert main(["show", "--store", path, "--resources", "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert (data["kernel"], data["spilled"], data["occupancy"]) == (kernel, 12, None)
    assert main(["show", "--store", path, "--resources", "--compile", "0/0"]) == 2
