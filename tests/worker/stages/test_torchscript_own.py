"""What a script makes with ``torch.jit`` itself, in real runs: its programs and the loops of fused groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.ir.nodes import facts_of
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import run_plain_forked
from torchscript_runs import ran, share_with_lines

pytestmark = pytest.mark.worker

OWN = """\
import io
import torch


def helper(x):
    return torch.nn.functional.gelu(x) * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        print("in the script", self.calls)
        y = self.first(x)
        y = self.second(y)
        return helper(y)

    @torch.jit.export
    def twice(self, x):
        return x * 2


@torch.jit.script
def scaled(x, by: float):
    if by > 1:
        return x * by
    return x + by


torch.manual_seed(0)
x = torch.randn(2, 4)
net = torch.jit.script(Net())
for _ in range(2):
    net(x).sum().backward()
print(net.calls, [round(float(p.grad.abs().sum()), 4) for p in net.parameters()])
torch.set_grad_enabled(False)
print(scaled(x, 2.0).tolist(), scaled(x, 0.5).tolist(), net.twice(x).tolist())
traced = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(4, 4)).eval(), (x,))
frozen = torch.jit.freeze(traced)
print(traced(x).tolist(), frozen(x).tolist())
fast = torch.jit.optimize_for_inference(torch.jit.script(Net().eval()))
file = io.BytesIO()
torch.jit.save(net, file)
file.seek(0)
loaded = torch.jit.load(file)
print(fast(x).tolist(), loaded(x).tolist(), loaded.calls)
print(torch.rand(1).item(), str(net.graph), net.code)
print(torch.compile(lambda a: a + 1)(x).tolist())
"""


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.split("\n"), 1) if text in line)


def test_what_a_script_makes_itself_is_captured_and_computes_the_same(tmp_path: Path) -> None:
    found = ran(tmp_path, OWN)
    plain = run_plain_forked(tmp_path / "script.py")
    assert (found.stdout, found.stderr) == (plain.stdout, plain.stderr)
    assert [one.why for one in found.report.capture_gaps] == []
    forward, sequential = line_of(OWN, "def forward"), line_of(OWN, "torch.jit.trace")
    assert [(one.function, one.line) for one in found.report.compiles] == [
        ("scaled", line_of(OWN, "@torch.jit.script")),
        ("forward", forward),
        ("twice", line_of(OWN, "@torch.jit.export")),
        ("forward", sequential),
        ("forward", sequential),  # frozen
        ("forward", forward),
        ("forward", forward),  # optimized for inference
        ("forward", line_of(OWN, "torch.jit.load")),
        ("<lambda>", line_of(OWN, "torch.compile")),
    ]
    never_called = found.report.compiles[5].id
    for compile in found.report.compiles:
        bases = [one.name.removeprefix("torchscript-") for one in compile.stages if not one.passed]
        called = compile.id != never_called
        assert set(bases) >= {"graph", "inlined", *(("profiled", "optimized", "ir") if called else ())}, compile
        for stage in ("inlined", *(("optimized",) if called else ())):
            if compile.line == sequential:
                continue  # all that is in it are PyTorch's own modules
            assert share_with_lines(found, f"{compile.id}/torchscript-{stage}") == 1, (compile, stage)
    with Store(found.store) as store:  # both calls of the same line of PyTorch's
        facts = facts_of(store.stage_data(found.report.run, f"{found.report.compiles[1].id}/torchscript-optimized"))
    linear = [
        [frame.line for frame in one.stack if "/torch/" not in frame.file]
        for one in facts
        if one.target == "aten.linear"
    ]
    assert linear == [[line_of(OWN, "self.first(x)")], [line_of(OWN, "self.second(y)")]]


NNC = """\
import torch

torch._C._jit_override_can_fuse_on_cpu(True)
torch._C._jit_set_te_must_use_llvm_cpu(False)  # the loops are interpreted


def f(x, y):
    z = (x + y) * 2
    w = torch.sigmoid(z)
    return torch.relu(z) - y, w * w


f = torch.jit.script(f)
with torch.no_grad():
    for _ in range(3):
        found = f(torch.ones(8, 4), torch.ones(8, 4))
print([one.sum().item() for one in found])
"""


def test_the_loops_of_a_fused_group(tmp_path: Path) -> None:
    found = ran(tmp_path, NNC)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    assert found.report.capture_gaps == ()
    rows = found.text("0/0/torchscript-loops").split("\n")
    assert rows[1].strip().startswith("for (int64_t ")
    stores = {row.partition("[")[0].strip(): number for number, row in enumerate(rows, 1) if "] = " in row}
    with Store(found.store) as store:
        reached = Provenance(store, found.report)
        lines = {
            name: {line.line for item in reached.items("0/0/torchscript-loops").items if item.element.line == number
                   for line in reached.origins(item.element)}
            for name, number in stores.items()
        }  # fmt: skip
    assert lines == {"aten_mul_1": {8, 9, 10}, "aten_sub": {8, 10}}
    assert "fused groups: 1" in found.text("0/0/torchscript-fuser")


def test_by_default_nothing_is_fused_on_the_cpu(tmp_path: Path) -> None:
    text = NNC.replace("torch._C._jit", "None and torch._C._jit")
    found = ran(tmp_path, text)
    assert "torchscript-loops" not in [one.name for one in found.report.compiles[0].stages]
    facts = found.text("0/0/torchscript-fuser")
    assert "fused groups: 0" in facts
    assert "fuses on the CPU: no" in facts
