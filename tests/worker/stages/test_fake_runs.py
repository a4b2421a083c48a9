"""Runs on tensors that have shapes and no storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.targets import fake_of, machine_code_of
from irscope.protocol import OutcomeKind
from irscope.store.store import Store
from irscope.vocabulary.units import size
from support import run_captured, write

# 10¹² parameters, which no machine has the memory for.
SCRIPT = """\
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(1 << 20, 1 << 19), nn.GELU(), nn.Linear(1 << 19, 1 << 20)).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters())

@torch.compile
def step(x):
    return model(x).float().square().mean()

loss = step(torch.randn(8, 1 << 20, device="cuda", dtype=torch.bfloat16))
loss.backward()
optimizer.step()
print("loss", loss.item())
if loss > 3:
    print("large")
print(model[0].bias)
assert loss.new_ones(2).numpy().sum() == 0
assert model[0].weight.grad.shape == model[0].weight.shape and model[0].weight.dtype is torch.bfloat16
torch.nonzero(loss)
"""


@pytest.mark.nightly  # one more model
def test_a_model_larger_than_the_memory(tmp_path: Path, triton: None) -> None:
    ran = run_captured(write(tmp_path, SCRIPT), tmp_path / "runs.db", "deep", targets=("h100",), fake=True)
    assert ran.stdout.startswith("loss 0.0\nParameter(FakeTensor(") and "large" not in ran.stdout
    found = [
        (each.range.start.line, each.message.split(", and ")[1])
        for each in ran.report.findings
        if each.kind == "fake-value"
    ]
    assert found == [
        (14, "a number is needed here."),
        (15, "a number is needed here."),
        (17, "its text is needed here."),
        (18, "numpy is needed here."),
        (20, "nonzero, whose result has a shape that depends on values, is needed here."),
    ]
    assert "DynamicOutputShapeException" in ran.report.outcome.message
    assert '"bf16[1048576, 524288]' in ran.text("0/0/h100/joint-graph")
    assert {kernel.target for kernel in ran.report.predicted_kernels} == {"h100"}
    assert "def call(" in ran.text("0/0/h100/output-code-backward")
    with Store(ran.store) as store:
        fit = store.stage_data(ran.report.run, "0/0/h100/memory-fit")
    assert fit["parameters"] == fit["gradients"] == 2 * ((1 << 40) + (1 << 20) + (1 << 19))
    assert 2 * fit["parameters"] <= fit["optimizer"] <= 2 * fit["parameters"] + 64
    assert fit["step"] == fit["parameters"]  # AdamW makes the square roots of one state for all parameters at once
    assert fit["devices"] == -(-fit["total"] // fit["memory"]) > 80


def test_without_a_target_nothing_would_be_compiled() -> None:
    assert fake_of(True, "h100") and not fake_of(False, "")
    with pytest.raises(LookupError, match="--fake needs --target"):
        fake_of(True, "")
    assert machine_code_of(True, "") and not machine_code_of(False, "h100")
    with pytest.raises(LookupError, match="--no-machine-code needs --target"):
        machine_code_of(False, "")


OWN = """\
import torch, triton, triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * 2, i < n)

def launch(x):
    y = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y

@torch.compile(dynamic=True)
def own(x):
    return launch(x * 3) + 1

own(torch.randn(1000))
"""


def test_a_launch_is_no_line_of_the_kernel_whose_result_it_reads(tmp_path: Path, triton: None) -> None:
    """The only run by default that sees the hook on the stacks of a kernel's origins, and a target's guards on sizes."""
    ran = run_captured(
        write(tmp_path, OWN), tmp_path / "runs.db", "deep", targets=("h100",), fake=True, machine_code=False
    )
    lines = {kernel.name: {origin.line for origin in kernel.origins} for kernel in ran.report.predicted_kernels}
    launch, call = 10, 15
    assert lines == {"triton_poi_fused_mul_0": {call}, "scale_0": {launch}, "triton_poi_fused_add_1": {call}}
    assert "L['x'].size()[0] <= 2147483647  # _inductor/codegen/simd.py:" in ran.text("0/0/h100/guards")


OPERATORS = (
    OWN
    + """\
import torch.nn.functional as F
from torch.nn.attention.flex_attention import flex_attention

@torch.compile
def flex(q):
    return flex_attention(q, q, q, score_mod=distance)

def distance(s, b, h, i, j):
    return s + i - j

@torch.compile(dynamic=True)
def symbolic(q, w):
    return (F.scaled_dot_product_attention(q, q, q) @ w).relu().sum()

launch(torch.randn(500))
flex(torch.randn(1, 2, 128, 64))
symbolic(torch.randn(1, 33, 32, 64, requires_grad=True), torch.randn(64, 64)).backward()
"""
)


@pytest.mark.nightly  # three more compiles
def test_operators_that_call_graphs_and_kernels_of_the_user(tmp_path: Path, triton: None) -> None:
    ran = run_captured(
        write(tmp_path, OPERATORS), tmp_path / "runs.db", "deep", targets=("h100",), fake=True, machine_code=False
    )
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED and ran.report.capture_gaps == ()
    kernels = {kernel.compile for kernel in ran.report.predicted_kernels if kernel.is_generated}
    assert kernels == {"0/0/h100", "1/0/h100", "2/0/h100"}
    lines = {kernel.name: {origin.line for origin in kernel.origins} for kernel in ran.report.predicted_kernels}
    found = [next(lines[name] for name in lines if part in name) for part in ("flex_attention", "scale", "_mul_")]
    assert found == [{23, 26}, {10}, {15}]  # what a template has in itself is its own; what a launch reads is not


INT8 = """\
import torch
import torch.nn.functional as F

q, s, b = torch.zeros(4096, 1024, dtype=torch.int8), torch.zeros(4096, dtype=torch.bfloat16), torch.zeros(4096, dtype=torch.bfloat16)
x = torch.zeros(32, 1024, dtype=torch.bfloat16)

def materialized(x, q, s, b):
    w = q.to(x.dtype) * s[:, None]
    return F.linear(x, w, b)

def one_call(x, q, s, b):
    return x @ q.t().to(x.dtype) * s

def template(x, q, s, b):
    return x @ q.to(x.dtype) * s

torch.compile(materialized)(x, q, s, b)
torch.compile(one_call)(x, q, s, b)
torch.compile(template, options={"max_autotune": True})(x, q.t().contiguous(), s, b)
torch.compile(materialized, options={"max_autotune": True})(x, q, s, b)
"""


@pytest.mark.nightly  # four more compiles
def test_a_weight_that_is_made_larger_before_a_library_reads_it(tmp_path: Path, triton: None) -> None:
    ran = run_captured(
        write(tmp_path, INT8), tmp_path / "runs.db", "deep", targets=("h100",), fake=True, machine_code=False
    )
    (found,) = [each for each in ran.report.findings if each.code == "materialized-operand-predicted"]
    needed, written, scales = 4096 * 1024, 2 * 4096 * 1024, 2 * 4096
    assert (found.range.start.line, found.related[0].range.start.line, found.compiles) == (9, 8, ("0/0",))
    assert size(needed + scales + 2 * written) in found.message and size(needed + scales) in found.message
    kernels = [(each.compile, each.name) for each in ran.report.predicted_kernels]
    assert ("1/0/h100", "extern_kernels._weight_int8pack_mm") in kernels and len(
        [k for k in kernels if k[0] == "2/0/h100"]
    ) == 1
    with Store(ran.store) as store:  # a template reads each operand as a whole
        nodes = store.stage_data(ran.report.run, "0/1/h100/ir-post-fusion")["nodes"]
        assert ["buf0", written] in nodes[-1]["reads"]
        (operator,) = store.stage_data(ran.report.run, "2/0/h100/autotuning")["operators"]
    assert len(operator["choices"]) > 10 and operator["why"] == "the least estimate" and operator["estimates"][0] > 0


TWO_STEPS = """\
import torch

def f(x):
    return x.sin().sum()

def g(x):
    return x.cos().sum()

x = torch.randn(64, requires_grad=True)
torch.compile(f)(x).backward()
torch.compile(g)(x).backward()
"""


@pytest.mark.nightly  # one more run, which only a build of torch for CUDA can fail
def test_what_is_compiled_after_a_backward_is_predicted(tmp_path: Path) -> None:
    """Autograd refuses to run in a copy of a process in which it has started the threads of devices."""
    script = write(tmp_path, TWO_STEPS)
    ran = run_captured(script, tmp_path / "runs.db", "deep", targets=("cpu-avx2",), fake=True)
    assert [prediction.outcome.value for prediction in ran.report.predictions] == ["compiled", "compiled"]
