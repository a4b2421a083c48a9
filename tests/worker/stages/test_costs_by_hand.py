"""What predicted kernels read, write and compute, against counts by hand from shapes and dtypes.

Each row has a function, and what its one kernel has to move: bytes read, bytes written, floating-point operations.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.ir.roofline import TARGETS, kernel_costs
from irscope.store.store import Store
from support import run_captured, write

INPUTS = """\
import torch
import torch.nn.functional as F

x, y, v, m = torch.ones(64, 1000), torch.ones(64, 1000), torch.ones(1000), torch.ones(64, 1000) > 0
table, rows = torch.ones(10000, 64), torch.arange(32)
a, b = torch.ones(256, 512, dtype=torch.bfloat16), torch.ones(512, 128, dtype=torch.bfloat16)
c, d = torch.ones(8, 64, 128), torch.ones(8, 128, 32)
torch.set_grad_enabled(False)
"""
X, V = 64 * 1000 * 4, 1000 * 4  # bytes of x and y, and of v
COUNTS = {
    "x + y": (2 * X, X, None),
    "torch.relu(x).bfloat16()": (X, X // 2, None),
    "x.softmax(-1)": (X, X, None),  # both passes read the same
    "x.sum(-1)": (X, 64 * 4, None),
    "F.layer_norm(x, (1000,), v, v)": (X + V, X, None),  # v is one tensor
    "x[:, :100] * 2": (64 * 100 * 4, 64 * 100 * 4, None),
    "F.embedding(rows, table) * 2": (32 * 8 + 32 * 64 * 4, 32 * 64 * 4, None),
    "x + v": (X + V, X, None),
    "torch.where(m, x, y)": (2 * X + 64 * 1000, X, None),  # a bool has one byte
    "x.T.contiguous()": (X, X, None),
    "a @ b": ((256 * 512 + 512 * 128) * 2, 256 * 128 * 2, 2 * 256 * 512 * 128),
    "torch.bmm(c, d)": ((8 * 64 * 128 + 8 * 128 * 32) * 4, 8 * 64 * 32 * 4, 2 * 8 * 64 * 128 * 32),
}
BANDWIDTH, BFLOAT16, FLOAT32 = 3.35e12, 989e12, 67e12  # of an H100 SXM, from its data sheet


@pytest.mark.nightly
def test_costs_of_kernels_for_a_target(tmp_path: Path, triton: None) -> None:
    functions = "".join(
        f"@torch.compile(dynamic=False)\ndef f{n}():\n    return {code}\n\nf{n}()\n" for n, code in enumerate(COUNTS)
    )
    how = {"targets": ("h100",), "machine_code": False, "fake": True}
    ran = run_captured(write(tmp_path, INPUTS + functions), tmp_path / "runs.db", "deep", **how)  # type: ignore[arg-type]
    with Store(ran.store) as store:
        costs = kernel_costs(store, ran.report.of_target("h100"), TARGETS["h100"])
    found = {each.stage.split("/")[0]: (each.read, each.written, each.flops) for each in costs}
    assert len(costs) == len(COUNTS)
    assert {code: found[str(number)] for number, code in enumerate(COUNTS)} == COUNTS
    for cost, (read, written, operations) in zip(costs, COUNTS.values(), strict=True):
        rate = BFLOAT16 if cost.dtype == "bfloat16" else FLOAT32
        assert cost.seconds == pytest.approx(max((read + written) / BANDWIDTH, (operations or 0) / rate))
