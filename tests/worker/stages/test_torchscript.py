"""Real runs of what `torch.compile` is given through the pipeline TorchScript: five models, and what is baked into traces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS, lines_kept, reached
from irscope.ir.graphs import parse_graph
from irscope.ir.nodes import facts_of
from irscope.store.store import Store
from support import Ran, run_forked, run_plain_forked, write
from torchscript_runs import ran, share_with_lines

pytestmark = pytest.mark.worker

MLP = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return torch.softmax(self.second(hidden), dim=-1) * 2


def make():
    return Net(), (torch.randn(3, 8),), {}
"""
CONV = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = torch.max_pool2d(x, 2).mean((2, 3))
        return self.last(torch.dropout(x, 0.1, self.training))


def make():
    return Net(), (torch.randn(2, 3, 12, 12),), {}
"""
BERT = """\
import torch, transformers as T


def make():
    config = T.BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                          intermediate_size=32, max_position_embeddings=32)
    return T.BertModel(config), (), {"input_ids": torch.randint(50, (2, 8))}
"""
GPT2 = """\
import torch, transformers as T


def make():
    config = T.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0)
    return T.GPT2LMHeadModel(config), (), {"input_ids": torch.randint(50, (2, 8)), "use_cache": False}
"""
VIT = """\
import torch, transformers as T


def make():
    config = T.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                         image_size=16, patch_size=8)
    return T.ViTModel(config), (torch.randn(2, 3, 16, 16),), {}
"""
MODELS_OF_ALL = ("mlp", "conv", "bert", "gpt2", "vit")
MODELS = {"mlp": MLP, "conv": CONV, "bert": BERT, "gpt2": GPT2, "vit": VIT}
RUNS = """

def first(out):
    return out if isinstance(out, torch.Tensor) else out[0]


def digits(x):
    return [round(float(v), 4) for v in x.flatten()[:6]]


torch.manual_seed(0)
model, args, kwargs = make()
compiled = torch.compile(model, backend="eager")
model.eval()
with torch.no_grad():
    eager = first(model(*args, **kwargs))
    for _ in range(2):
        torch.testing.assert_close(first(compiled(*args, **kwargs)), eager, rtol=1e-4, atol=1e-5)
print(digits(eager))
"""
TRAINS = """

def first(out):
    return out if isinstance(out, torch.Tensor) else out[0]


torch.manual_seed(0)
model, args, kwargs = make()
compiled = torch.compile(model.train(), backend="eager")
optimizer = torch.optim.SGD(compiled.parameters(), lr=0.01)
for _ in range(3):
    torch.manual_seed(1)
    loss = first(compiled(*args, **kwargs)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(float(loss), 5))
print([round(float(p.abs().sum()), 3) for p in model.parameters()][:4])
print([round(float(b.float().abs().sum()), 3) for b in model.buffers()][:4])
"""
STAGES = ["graph", "inlined", "frozen", "profiled", "optimized", "ir", "fuser"]
BACKWARD = ["gradient", "profiled", "optimized"]


def names(found: Ran) -> list[str]:
    return [one.name.removeprefix("torchscript-") for one in found.report.compiles[0].stages if not one.passed]


@pytest.mark.parametrize(
    # The convolutions have the MLP's operations, too.
    "model",
    ["conv", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("mlp", "bert", "gpt2", "vit"))],
)
def test_inference(model: str, tmp_path: Path) -> None:
    if model in ("bert", "gpt2", "vit"):
        pytest.importorskip("transformers")
    found = ran(tmp_path, MODELS[model] + RUNS)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    assert [one.why for one in found.report.capture_gaps] == []
    assert names(found) == STAGES
    [compile] = found.report.compiles
    text = found.text("0/0/torchscript-inlined")
    # As Dynamo counts: taking an item of a list is a call, too.
    assert compile.graph_ops == len(re.findall(r" = (torch\.ops\.|\w+\[\d+\]$)", text, re.MULTILINE)) > 0
    for stage in ("inlined", "frozen", "profiled", "optimized"):
        assert share_with_lines(found, f"0/0/torchscript-{stage}") >= 0.95, stage


@pytest.mark.parametrize("model", [pytest.param("mlp", marks=pytest.mark.nightly), "conv"])  # conv has buffers as well
def test_training_computes_what_it_does_without_irscope(model: str, tmp_path: Path) -> None:
    found = ran(tmp_path, MODELS[model] + TRAINS)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    assert found.report.capture_gaps == ()
    own = [name for name in STAGES if name != "frozen"]  # a module in training cannot be frozen
    assert names(found) == [*own, *BACKWARD]
    assert "torch.ops.prim.DifferentiableGraph" in found.text("0/0/torchscript-optimized")
    for stage in ("optimized", *(f"{name}-backward" for name in BACKWARD)):
        assert share_with_lines(found, f"0/0/torchscript-{stage}") >= 0.95, stage


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS_OF_ALL)
def test_lines_reach_the_lowest_graphs_of_five_models(model: str, tmp_path: Path) -> None:
    """Each script compares its results and gradients with eager mode's and fails where they differ."""
    for name, scripts in (("inference", SCRIPTS), ("training", TRAINING_SCRIPTS)):
        found = ran(tmp_path / name, scripts[model])
        assert found.report.outcome is not None
        assert found.report.outcome.exit_code == 0, found.stderr
        assert found.report.capture_gaps == ()
        last = {
            one.id for one in found.report.compiles[0].stages if one.name == "torchscript-optimized" and not one.passed
        }
        counts = [lines_kept(found, stage) for stage in last]
        assert sum(kept for kept, _ in counts) >= 0.95 * sum(calls for _, calls in counts) > 0
        assert name == "inference" or len(last) > 1, "a backward"
        assert reached(found).share >= 0.95


DISTINCT = """\
import torch


def f(x, w):
    a = torch.sin(x)
    b = torch.mm(a, w)
    c = torch.tanh(b)
    d = torch.sin(c)
    return d.sum()


f = torch.compile(f)
x, w = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3, requires_grad=True)
for _ in range(3):
    f(x, w).backward()
print([[round(one, 4) for one in row] for row in x.grad.tolist()])
"""


def test_operations_of_a_backward_have_the_lines_of_their_forward(tmp_path: Path) -> None:
    found = ran(tmp_path, DISTINCT)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    with Store(found.store) as store:
        lines = {
            kind: [
                (one.target, one.stack[-1].line)
                for one in facts_of(store.stage_data(found.report.run, f"0/0/torchscript-{kind}-backward"))
                if one.target in ("aten.cos", "aten.mm")
            ]
            for kind in ("gradient", "optimized")
        }
    assert lines["gradient"] == [("aten.cos", 8), ("aten.cos", 5)], "the gradients of mm are functions of TorchScript's"
    assert lines["optimized"] == [("aten.cos", 8), ("aten.mm", 6), ("aten.mm", 6), ("aten.cos", 5)]


REPEATS = """\
import torch


def twice(x):
    a = x.sin() + 1
    b = x.sin() + 1
    return a * b


f = torch.compile(twice)
print(f(torch.ones(3)).tolist())
print(f(torch.ones(4)).tolist())
"""


def test_a_pass_that_changes_the_graph_is_a_version_of_it(tmp_path: Path) -> None:
    found = ran(tmp_path, REPEATS)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    versions = [one for one in found.report.compiles[0].stages if one.passed]
    assert "EliminateCommonSubexpression" in [one.passed for one in versions]
    assert found.text("0/0/torchscript-inlined").count("aten.sin(") == 2
    assert found.text("0/0/torchscript-optimized").count("aten.sin(") == 1
    [merged] = [one for one in versions if one.passed == "EliminateCommonSubexpression"]
    with Store(found.store) as store:
        assert "sin" in " ".join(store.stage_data(found.report.run, merged.id)["removed"])
    [gap] = found.report.capture_gaps
    assert gap.what == "calls of twice with other inputs (0/0)", "a call with another shape runs as Python"


BRANCHES = """\
import torch


def branch(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y * 2


f = torch.compile(branch)
print(f(torch.ones(3)).tolist(), f(-torch.ones(3)).tolist())
"""
CONDITION = 5


def test_control_flow_that_depends_on_values_is_scripted(tmp_path: Path) -> None:
    found = ran(tmp_path, BRANCHES)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout == "[4.0, 4.0, 4.0] [-4.0, -4.0, -4.0]\n"
    [finding] = found.report.findings
    assert (finding.code, finding.range.start.line) == ("baked-value", CONDITION)
    text = found.text("0/0/torchscript-inlined")
    assert "torch.ops.prim.If(" in text
    assert "torch.ops.aten.sub(x_1, 1, 1)" in text, "the branch that was not taken is there"


UNSCRIPTABLE = BRANCHES.replace("    return y * 2", "    yield_ = {**{'a': y}}\n    return yield_['a'] * 2")


def test_what_can_be_neither_traced_nor_scripted_runs_as_python(tmp_path: Path) -> None:
    found = ran(tmp_path, UNSCRIPTABLE)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    codes = {finding.code: finding.range.start.line for finding in found.report.findings}
    assert codes == {"baked-value": CONDITION, "unsupported-by-script": CONDITION + 4}
    assert "torch.ops.aten.add(" in found.text("0/0/torchscript-inlined"), "its trace is shown"


PRINTS = """\
import sys
import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))


def f(x):
    print("in f")
    return model(x)


torch.manual_seed(3)
model.load_state_dict({"0.weight": torch.eye(3), "0.bias": torch.ones(3)})
f = torch.compile(f, backend="eager")
print(f(torch.ones(2, 3)).tolist())
print(torch.rand(1).item(), file=sys.stderr)
sys.exit(3)
"""


def test_output_random_numbers_and_exit_code_stay_the_same(tmp_path: Path) -> None:
    script = write(tmp_path, PRINTS)
    found = run_forked(script, tmp_path / "runs.db", "deep", pipeline="torchscript")
    plain = run_plain_forked(script)
    assert found.stdout.count("in f") == 1
    assert (found.stdout, found.stderr) == (plain.stdout, plain.stderr)
    assert found.report.outcome is not None
    assert found.report.outcome.exit_code == plain.returncode == 3


FORCED = """\
import torch

torch._C._jit_override_can_fuse_on_cpu(True)  # without LLVM the executor then fails


def f(x, y):
    return ((x + y) * 2).relu() - y


f = torch.compile(f, backend="eager")
with torch.no_grad():
    print(f(torch.ones(4, 4), torch.ones(4, 4)).sum())
"""


def test_a_program_that_the_executor_cannot_run_runs_as_python(tmp_path: Path) -> None:
    found = ran(tmp_path, FORCED)
    assert found.stdout == run_plain_forked(tmp_path / "script.py").stdout
    [gap] = found.report.capture_gaps
    assert gap.what == "the passes of 0/0"


LISTED = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2))).eval()
with torch.no_grad():
    torch.compile(model)(torch.ones(2, 4))
"""


def test_parameters_of_modules_in_a_list_are_read(tmp_path: Path) -> None:
    """Their names are numbers, which are not names in Python."""
    store = tmp_path / "runs.db"
    run = run_forked(write(tmp_path, LISTED), store, lane="deep", pipeline="torchscript").report.run
    with Store(str(store)) as opened:
        text = opened.stage_text(run, "0/0/torchscript-inlined")
        facts = facts_of(opened.stage_data(run, "0/0/torchscript-inlined"), text)
    read = parse_graph(text).nodes
    assert {node.target for node in read if node.op == "get_attr"} == {"0.weight", "0.bias", "1.1.weight", "1.1.bias"}
    assert {fact.target for fact in facts if fact.op == "get_attr"} == {"0.weight", "0.bias", "1.1.weight", "1.1.bias"}
    assert [node.name for node in read] == [fact.name for fact in facts]
    modules = {fact.target: fact.module[0] for fact in facts if fact.module and fact.op == "get_attr"}
    assert modules["1.1.weight"] == "L['self'].1.1"
