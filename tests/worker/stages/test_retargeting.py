"""Kernels for devices that are not here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from irscope.lowering import cpp, make, tools
from irscope.lowering.resources import resources_of
from irscope.protocol import CompileOutcome, ValuesRequest
from irscope.store.store import Store
from irscope.values.run.reading import stored_values
from support import Ran, run_captured, run_forked, triton_importable, write

SCRIPT = """\
import torch

@torch.compile
def f(x, y):
    return torch.softmax(x * y, -1)

print(f(torch.ones(4, 8), torch.ones(8)).sum().item(), torch.cuda.is_available(), torch.get_num_threads() > 0)
"""
TRAINED = """\
import torch

@torch.compile
def f(x, w):
    return torch.tanh(x @ w).sum()

w = torch.ones(8, 8, requires_grad=True)
f(torch.ones(4, 8), w).backward()
print(w.grad.shape)
"""
ATTENTION = """\
import torch
import torch.nn.functional as F

@torch.compile
def f(q, k, v):
    return F.scaled_dot_product_attention(q * 2, k, v, is_causal=True).float().sum()

q, k, v = (torch.ones(2, 4, 32, 16, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
f(q, k, v).backward()
print(q.grad.shape)
"""
ON_CUDA = """\
import sys
import torch
from helper import moved

assert torch.cuda.is_available()
model = torch.nn.Linear(8, 8).cuda()
start = torch.cuda.Event(enable_timing=True)
start.record()

@torch.compile(dynamic=True)  # sizes that are numbers are a special case
def f(x):
    h = model(x).bfloat16()
    return torch.nn.functional.scaled_dot_product_attention(h, h, h)

y = f(moved(torch.ones(3, 2, 4, 8, device="cuda:0")))
torch.cuda.synchronize()
print(sys.argv[1:], y.device, torch.cuda.get_device_name(), torch.cuda.max_memory_allocated())
"""
RESTARTED = """\
import torch

norm = torch.nn.LayerNorm(8)  # Its eps is an input of the graph at first, and a constant after the restart.
step = torch.compile(norm, dynamic=True)
step(torch.ones(4, 8)).sum().backward()
"""
OWN_KERNELS = """\
import torch
import triton
import triton.language as tl

@triton.jit
def scaled(x, s):
    return tl.sigmoid(x * s)

@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, scaled(x, 2.0), mask=at < n)

@torch.library.triton_op("mine::op", mutates_args={})
def op(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(kernel)[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out

@torch.compile(mode="reduce-overhead")
def f(x, y):
    x.add_(1)
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel())
    return op(y) + out

x = torch.zeros(50, device="cuda")
torch.testing.assert_close(f(x, torch.zeros(50)), torch.sigmoid(torch.tensor(2.0)) + torch.full((50,), 0.5))
@torch.compile(mode="reduce-overhead")
def g(x, table):
    return x * 2 + table.sum()

table = torch.ones(16, device="cpu")
g(x, table)
for size in (50, 50, 64):  # outside of compiled code; a multiple of 16 is another kernel
    out = torch.empty(size)
    kernel[(2,)](torch.zeros(size), out, size)
    torch.testing.assert_close(out, torch.full((size,), 0.5))
print("as on the GPU")
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("target")
    return run_forked(write(folder, SCRIPT), folder / "runs.db", "deep", targets=("h100", "cpu-avx2", "cpu-avx512"))


def test_the_run_is_as_without_a_target(ran: Ran) -> None:
    assert ran.stdout == "4.0 False True\n"
    assert [compile.id for compile in ran.report.compiles] == ["0/0"]
    assert {kernel.target for kernel in ran.report.kernels} == {""} and ran.kernels("cpp")
    assert not any("/h100/" in stage.id for stage in ran.compile("0/0").stages)


def test_the_graph_is_on_the_device(ran: Ran) -> None:
    prediction = ran.report.predictions[0]
    assert (prediction.id, prediction.target, prediction.function) == ("0/0/h100", "h100", "f")
    assert {stage.target for stage in prediction.stages} == {"h100"}
    text = ran.text("0/0/h100/post-grad-graph")
    assert "cuda:0" in text and "cpu" not in text
    assert "cuda" not in ran.text("0/0/post-grad-graph")


def test_without_triton_a_gap_says_so(ran: Ran) -> None:
    if find_spec("triton") is not None:
        assert ran.report.capture_gaps == ()
        return
    (gap,) = ran.report.capture_gaps
    assert gap.what == "kernels for h100" and "triton" in gap.why
    assert ran.report.predictions[0].outcome is CompileOutcome.ERROR


@pytest.mark.nightly  # test_cuda_names has what is changed in it
def test_a_script_that_names_cuda_runs_on_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def moved(x):\n    return x.to('cuda', non_blocking=True)\n")
    script = write(tmp_path, ON_CUDA)
    ran = run_forked(script, tmp_path / "runs.db", "deep", targets=("h100",), args=("--device=cuda", "cuda-like"))
    assert ran.stdout == "['--device=cpu', 'cuda-like'] cpu NVIDIA H100 80GB HBM3 0\n"
    gaps = {gap.what: gap.why for gap in ran.report.capture_gaps}
    if find_spec("triton") is None:
        assert gaps["kernels for h100"].endswith(f"To install it: {sys.executable} -m pip install 'triton>=3.6,<3.10'")
    assert (
        gaps["what the script does on the GPU"]
        == f"a run with --target is on the CPU: {script.name}:6, {script.name}:15, helper.py:2"
    )
    assert [prediction.id for prediction in ran.report.predictions] == ["0/0/h100"]
    assert not list(tmp_path.glob("__pycache__/helper*"))
    # The graph of a training step has the device's attention, with or without triton.
    assert "_scaled_dot_product_cudnn_attention_backward" in ran.text("0/0/h100/joint-graph")
    assert "_scaled_dot_product_flash_attention_for_cpu_backward" in ran.text("0/0/joint-graph")


@pytest.mark.nightly  # one more script
def test_a_restart_that_only_the_compile_for_the_target_asks_for(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, RESTARTED), tmp_path / "runs.db", "deep", targets=("cpu-avx2",), fake=True)
    assert ran.report.capture_gaps == ()
    assert [(each.id, each.restarts) for each in ran.report.compiles] == [("0/0", 1)]
    (prediction,) = ran.report.predictions
    assert prediction.outcome is CompileOutcome.COMPILED
    assert "1e-05" in ran.text("0/0/cpu-avx2/joint-graph")


@pytest.mark.nightly  # more targets
def test_code_for_cpus_with_other_instructions(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled here, executed nowhere."""
    commands: list[str] = []
    original = tools.output_of

    def output_of(command: Sequence[str], **options: Any) -> str:
        commands.append(" ".join(command))
        return original(command, **options)

    monkeypatch.setattr(cpp, "output_of", output_of)
    for target, lanes, register, march in (
        ("cpu-avx2", 8, "%ymm", "x86-64-v3"),
        ("cpu-avx512", 16, "%zmm", "x86-64-v4"),
    ):
        prediction = next(each for each in ran.report.predictions if each.target == target)
        assert prediction.outcome is CompileOutcome.COMPILED
        (kernel,) = [each for each in ran.report.predicted_kernels if each.target == target and each.is_generated]
        text = ran.text(kernel.stage)
        assert kernel.language == "cpp" and f"static_cast<int64_t>({lanes}L)" in text
        with Store(ran.store) as store:
            make(store, store.report(ran.report.run), f"{kernel.stage}/assembly", sys.executable)
            assembly = store.stage_text(ran.report.run, f"{kernel.stage}/assembly")
        compiler = next(command for command in reversed(commands) if "kernel.cpp" in command)
        assert f"-march={march}" in compiler and "-march=native" not in compiler
        assert register in assembly and ("%zmm" in assembly) == (lanes == 16)


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("with-triton")
    with triton_importable():
        targets = ("h100", "b200", "mi300x")
        return run_captured(write(folder, SCRIPT), folder / "runs.db", "deep", targets=targets, fake=True)


def test_the_kernels_of_the_device(predicted: Ran) -> None:
    ran = predicted
    assert ran.report.capture_gaps == ()
    (kernel,) = [each for each in ran.report.predicted_kernels if each.target == "h100"]
    assert (kernel.language, kernel.target, kernel.compile) == ("triton", "h100", "0/0/h100")
    assert [origin.line for origin in kernel.origins] == [5]
    text = ran.text(kernel.stage)
    assert "multi_processor_count=132, cc=90" in text and "@triton.jit" in text
    assert "async_compile.triton(" in ran.text("0/0/h100/output-code")
    names = {stage.name for stage in ran.report.predictions[0].stages}
    assert {"ir-pre-fusion", "ir-post-fusion", "fusion", "memory-plan"} <= names


def test_the_kernel_is_compiled_down_to_machine_code(predicted: Ran) -> None:
    ran = predicted
    (kernel,) = [each for each in ran.report.predicted_kernels if each.target == "h100"]
    assert ".target sm_90a" in ran.text(f"{kernel.stage}/ptx")
    for target, code, words in (("b200", "ptx", ".target sm_100a"), ("mi300x", "amdgcn", "gfx942")):
        (other,) = [each for each in ran.report.predicted_kernels if each.target == target]
        assert words in ran.text(f"{other.stage}/{code}")
    with Store(ran.store) as store:
        lines = {line for _, line in store.stage_data(ran.report.run, f"{kernel.stage}/ptx")["lines"]}
        binary = store.stage_data(ran.report.run, f"{kernel.stage}/binary")
    rows = ran.text(kernel.stage).split("\n")
    assert any("tl.load(" in rows[line - 1] for line in lines)
    assert (binary["format"], binary["configs"] >= 1, "num_warps" in binary["config"]) == ("cubin", True, True)
    found = resources_of(binary, ran.text(f"{kernel.stage}/binary"), ran.text(f"{kernel.stage}/ptx"))
    assert (found.spilled, binary["spilled"], found.matrix) == (0, 0, "") and 8 <= found.registers <= 255


BY_TRITON = """
import importlib.util, sys
from torch._inductor.runtime import triton_helpers
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

triton_helpers.set_driver_to_gpu = lambda: None  # there is none, and nothing is launched
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
tuner = getattr(module, sys.argv[2])
config, meta = tuner.configs[0], tuner.triton_meta
source = ASTSource(tuner.fn, meta["signature"], {**meta["constants"], **config.kwargs}, meta["configs"][0])
debug = tuner.inductor_meta.get("assert_indirect_indexing", True)
options = {"num_warps": config.num_warps, "num_stages": config.num_stages, "debug": debug, "sanitize_overflow": False}
made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
print(triton.__version__)
print(made.asm["ptx"], end="")
"""


@pytest.mark.nightly  # other versions of Triton: run it in an environment of scripts/compatibility.py with one
def test_ptx_is_what_triton_makes_for_that_gpu_by_itself(predicted: Ran, tmp_path: Path, triton: None) -> None:
    """The same source, in a process without irscope and its stand-in for the device."""
    (kernel,) = [each for each in predicted.report.predicted_kernels if each.target == "h100"]
    ptx = predicted.text(f"{kernel.stage}/ptx")
    name = kernel.stage.rpartition("/")[2]
    (parts,) = re.findall(r'^\t\.file\t1 "(.+?)"(?: "(.+?)")?', ptx, re.MULTILINE)
    file = str(Path(*filter(None, parts)))
    script = write(tmp_path, BY_TRITON)
    env = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(script), file, name]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    version, _, theirs = done.stdout.partition("\n")
    assert version and ".target sm_90a" in theirs
    assert theirs == ptx


@pytest.mark.nightly
def test_attention_of_a_training_step_is_the_devices(tmp_path: Path, triton: None) -> None:
    ran = run_captured(write(tmp_path, ATTENTION), tmp_path / "runs.db", "deep", targets=("h100", "mi300x"))
    assert ran.report.capture_gaps == () and ran.stdout == "torch.Size([2, 4, 32, 16])\n"
    for stage in ("output-code", "output-code-backward"):
        assert "_scaled_dot_product_cudnn_attention" in ran.text(f"0/0/h100/{stage}")
        assert "_scaled_dot_product_flash_attention" in ran.text(f"0/0/mi300x/{stage}")
        assert "_for_cpu" in ran.text(f"0/0/{stage}")
    kernels = [kernel for kernel in ran.report.predicted_kernels if kernel.target == "mi300x" and kernel.is_generated]
    assert kernels
    for kernel in kernels:
        assert 'amdgcn_target "amdgcn-amd-amdhsa--gfx942"' in ran.text(f"{kernel.stage}/amdgcn")


CHECKPOINTED = """\
import torch, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

def block(x):
    q, k, v = x.unflatten(-1, (3, 2, 32)).permute(2, 0, 3, 1, 4)
    return x.sum() + F.scaled_dot_product_attention(q, k, v, is_causal=True)

@torch.compile
def f(x):
    return checkpoint(block, x, use_reentrant=False).float().sum()

f(torch.randn(2, 32, 192, dtype=torch.bfloat16, requires_grad=True)).backward()
"""


@pytest.mark.nightly  # one more training step
def test_attention_in_a_checkpoint(tmp_path: Path, triton: None) -> None:
    """It is computed again with the state of the device's generator, which is not here."""
    ran = run_captured(
        write(tmp_path, CHECKPOINTED), tmp_path / "runs.db", "deep", targets=("h100",), machine_code=False
    )
    assert ran.report.capture_gaps == ()
    assert ran.text("0/0/h100/forward-graph").count("_scaled_dot_product_cudnn_attention") >= 1


@pytest.mark.nightly  # one more script
def test_kernels_of_the_user_in_triton_and_cuda_graphs(tmp_path: Path, triton: None) -> None:
    ran = run_captured(write(tmp_path, OWN_KERNELS), tmp_path / "runs.db", "deep", targets=("h100",))
    assert ran.stdout == "as on the GPU\n"
    mine = [kernel for kernel in ran.report.predicted_kernels if kernel.name.startswith("kernel_")]
    assert len(mine) == 2
    for kernel in mine:
        assert ".target sm_90a" in ran.text(f"{kernel.stage}/ptx")
        with Store(ran.store) as store:
            places = store.stage_data(ran.report.run, kernel.stage)["places"]
        rows = ran.text(kernel.stage).split("\n")
        (line,) = [line for row, line in places if "tl.store(" in rows[row - 1]]
        assert "tl.store(" in OWN_KERNELS.split("\n")[line - 1]
    assert "no CUDA graph" in ran.text("0/0/h100/cuda-graphs")
    found = [each for each in ran.report.findings if each.code == "cudagraph-skip-predicted"]
    lines = OWN_KERNELS.split("\n")
    assert [lines[each.range.start.line - 1].strip() for each in found] == [
        "x.add_(1)",
        'table = torch.ones(16, device="cpu")',
    ]
    assert "cpu ops" in found[1].message and "outside: table: cpu ops" in ran.text("1/0/h100/cuda-graphs")
    (gap,) = [gap for gap in ran.report.capture_gaps if gap.what == "the CPU's own code of 0/0"]
    assert "interpreted" in gap.why
    assert not any("triton/" in gap.what for gap in ran.report.capture_gaps)
    launched = [each for each in ran.report.predictions if each.id.startswith("triton/")]
    assert [(each.id, each.function) for each in launched] == [("triton/1/h100", "kernel"), ("triton/2/h100", "kernel")]
    assert "kernel[(2,)](" in lines[launched[0].line - 1]
    (kernel,) = [each for each in ran.report.predicted_kernels if each.compile == "triton/1/h100"]
    assert [lines[origin.line - 1][:10] for origin in kernel.origins] == ["    kernel", "@triton.au"]
    assert ".target sm_90a" in ran.text(f"{kernel.stage}/ptx")
    with Store(ran.store) as store:
        assert store.stage_data(ran.report.run, f"{kernel.stage}/binary")["format"] == "cubin"


VALUES = """\
import torch
import torch.nn.functional as F

torch.manual_seed(0)

@torch.compile
def f(x, w):
    q = (x @ w).view(2, 3, 2, 8).transpose(1, 2).bfloat16()
    out = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    return F.dropout(out.transpose(1, 2).reshape(2, 3, 16).float(), 0.5).sum()

w = torch.randn(16, 16, requires_grad=True)
loss = f(torch.randn(2, 3, 16), w)
loss.backward()
print(loss.item(), w.grad.sum().item())
"""


def test_values_of_the_graphs_of_a_target(tmp_path: Path, triton: None) -> None:
    """The operator of attention there is none of the CPU's; random numbers and saved values are those of the script."""
    how: dict[str, Any] = {"targets": ("h100",), "values": ValuesRequest(), "machine_code": False}
    ran = run_captured(write(tmp_path, VALUES), tmp_path / "runs.db", "deep", **how)
    loss, gradient = map(float, ran.stdout.split())
    with Store(ran.store) as store:
        own, there = stored_values(store, ran.report), stored_values(store, ran.report.of_target("h100"))
    graphs = ["0/0/h100/post-grad-graph", "0/0/h100/post-grad-graph-backward"]
    assert [each.stage for each in there] == graphs and [each.data["notes"] for each in there] == [[], []]
    assert not {each.id for each in own} & {each.id for each in there}
    forward, backward = there
    assert any("_scaled_dot_product_cudnn_attention" in name for name in forward.names())
    total = forward.value("sum_1") or {}
    assert total["mean"] == pytest.approx(loss, rel=0.02, abs=0.02)
    product = backward.value("mm_1") or {}
    assert product["shape"] == [16, 16] and product["mean"] * 256 == pytest.approx(gradient, rel=0.05, abs=0.05)
