"""The pipeline ``tvm`` for real: Relax, its passes, TIR, LLVM IR and assembly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.store.store import Store
from pipeline_client import row_of, shown, steps_down
from runtimes import NET, RELU
from support import Ran, lines_marked, run_captured, run_plain, write

RunTvm = Callable[[Path, str], Ran]
HOUSEKEEPING = (
    "alloc_storage",
    "alloc_tensor",
    "kill_object",
    "kill_tensor",
    "kill_storage",
    "null_value",
    "call_packed",
)
"""Operations of Relax that compute nothing: memory, and checks of the arguments."""


@pytest.fixture(scope="module")
def ran_tvm(python_with: Callable[[str], str]) -> RunTvm:
    python = python_with("tvm")

    def run(folder: Path, source: str) -> Ran:
        return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="tvm", python=python)

    return run


@pytest.fixture(scope="module")
def mlp(ran_tvm: RunTvm, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_tvm(tmp_path_factory.mktemp("tvm"), SCRIPTS["mlp"])


def test_all_stages_are_there(mlp: Ran) -> None:
    assert (mlp.report.capture_gaps, mlp.report.findings) == ((), ())
    assert mlp.stdout == "agree (2, 4)\n", mlp.report.outcome
    [compile] = mlp.report.compiles
    names = [stage.name for stage in compile.stages]
    assert {"exported-program", "decomposed-program", "relax", "relax-lowered", "tvmscript"} <= set(names)
    passes = [stage.passed for stage in compile.stages if stage.passed]
    assert {"LegalizeOps", "FuseOps", "CallTIRRewrite", "StaticPlanBlockMemory"} <= set(passes)
    kernels = mlp.report.kernels
    assert {"fused_matmul_add_relu", "softmax"} <= {one.name for one in kernels}
    for below in ("tir", "tir-lowered", "tvm-llvm", "tvm-assembly"):
        assert names.count(below) == len(kernels), below
    assert all(one.origins for one in kernels)
    assert "T_add_intermediate" in mlp.text("0/0/kernel/fused_matmul_add_relu")
    assert "define " in mlp.text("0/0/kernel/softmax/tvm-llvm")


def test_a_fused_kernel_leads_up_to_the_lines_of_all_its_operators(mlp: Ran) -> None:
    with Store(mlp.store) as store:
        found = Provenance(store, mlp.report)
        stage = "0/0/kernel/fused_matmul_add_relu"
        for lowered in ("tir-lowered", "tvm-llvm", "tvm-assembly"):
            last = found.elements(f"{stage}/{lowered}")[-1]
            assert [one.stage for one in found.parents(last)] == [stage]
        program = [one for one in found.elements("0/0/exported-program") if one.name in ("linear", "relu", "softmax")]
        below = {one.name: set(found.below(one)) for one in program}
    assert stage in below["linear"] & below["relu"]
    assert stage not in below["softmax"]


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(ran_tvm: RunTvm, name: str, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and operations keep the lines of the model in every graph."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_tvm(tmp_path, SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree"), ran.report.outcome
    assert "goes on with its own program" not in ran.text("0/0/export-signature")
    [compile] = ran.report.compiles
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        for stage in ("0/0/decomposed-program", "0/0/relax", "0/0/relax-lowered"):
            calls = [one for one in found.items(stage).items if one.op == "call"]
            computing = [one.element for one in calls if one.target.rpartition(".")[2] not in HOUSEKEEPING]
            kept = [one for one in computing if any("/torch/" not in line.file for line in found.origins(one))]
            assert len(kept) >= 0.95 * len(computing) > 0, f"{len(kept)} of {len(computing)} in {stage}"
        versions = [one.id for one in compile.stages if one.passed]
        assert len(versions) > 6
        for version in versions:
            nodes = store.stage_data(ran.report.run, version)["new"]["nodes"]
            stacks = [at for op, at in zip(nodes["op"], nodes["stack"], strict=True) if op == "call_function"]
            assert stacks.count(-1) <= 0.05 * len(stacks) + 3, version  # the last one has checks of the arguments
        lowest = [one.id for one in compile.stages if one.name == "tvm-assembly"]
        reached = [stage for stage in lowest if found.origins(found.elements(stage)[0])]
        assert len(reached) >= 0.95 * len(lowest) > 0
    kernels = ran.report.kernels
    assert sum(bool(one.origins) for one in kernels) >= 0.95 * len(kernels)


UNSUPPORTED = """\
import torch


@torch.library.custom_op("irscope_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def program(x):
    return twice(x) + 1  # @unsupported


print(torch.compile(program)(torch.ones(3)))
"""


def test_an_operator_that_tvm_does_not_have_is_named_at_its_line(ran_tvm: RunTvm, tmp_path: Path) -> None:
    ran = ran_tvm(tmp_path, UNSUPPORTED)
    assert ran.report.capture_gaps == ()
    [finding] = ran.findings("unsupported-operator")
    assert {finding.range.start.line} == lines_marked(UNSUPPORTED, "# @unsupported")
    assert finding.code == "no-tvm-operator"
    assert "irscope_test.twice.default" in finding.message
    assert ran.compile("0/0").outcome is CompileOutcome.ERROR
    assert ran.stdout == "tensor([3., 3., 3.])\n"


DYNAMIC = """\
import torch


def program(x):
    y = torch.relu(x).sum(1)
    return y * 2


fast = torch.compile(program)
x = torch.ones(3, 4)
torch._dynamo.mark_dynamic(x, 0)
print(fast(x).sum(), fast(torch.ones(7, 4)).sum())


def unlike(x):
    y = x.reshape(-1, 2).sum(1)
    return y + torch.arange(x.shape[0] // 2 * 4)  # @refused


x = torch.ones(6, 4)
torch._dynamo.mark_dynamic(x, 0)
print(torch.compile(unlike)(x).shape)
"""


def test_dynamic_sizes_and_those_that_tvm_refuses(ran_tvm: RunTvm, tmp_path: Path) -> None:
    ran = ran_tvm(tmp_path, DYNAMIC)
    assert ran.report.capture_gaps == ()
    assert ran.stdout == "tensor(24.) tensor(56.)\ntorch.Size([12])\n"
    assert "goes on with its own program" not in ran.text("0/0/export-signature")
    [finding] = ran.report.findings
    assert (finding.kind, finding.code) == ("unsupported-operator", "no-tvm-operator")
    assert {finding.range.start.line} == lines_marked(DYNAMIC, "# @refused")
    assert "aten.add.Tensor" in finding.message


CALLS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.first(x)
        return {"turned": h.t() * 2, "sorted": h.sort(-1)[1], "mask": h > 0, "double": h.double()}


def shown(found):
    return [(k, v.dtype, v.shape, v.stride(), round(v.double().sum().item(), 4)) for k, v in found.items()]


torch.manual_seed(0)
net = Net().eval()
fast = torch.compile(net)
with torch.no_grad():
    print(shown(fast(torch.randn(2, 4))), shown(fast(torch.ones(5, 4))))
    net.first.weight.mul_(2)
    print(shown(fast(torch.ones(2, 4))))
fast(torch.ones(2, 4))["double"].sum().backward()
print(round(net.first.weight.grad.sum().item(), 4))
"""


def test_calls_that_are_not_like_the_first_and_results_of_all_kinds(ran_tvm: RunTvm, tmp_path: Path) -> None:
    ran = ran_tvm(tmp_path, CALLS)
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout == run_plain(tmp_path / "script.py").stdout


# --- the editor and the debugger --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def net(ran_tvm: RunTvm, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_tvm(tmp_path_factory.mktemp("net"), NET)


async def test_a_client_shows_the_stages_and_links_them_with_the_source(net: Ran) -> None:
    relax = "0/0/relax"
    async with shown(net) as client:
        assert client.tree.item.pipeline == "tvm"
        assert "relu" in await client.nodes(relax)
        line = row_of(net, relax, "torch.ops.relax.nn.relu(")
        above = client.uris["0/0/relax-lowered"]
        places = await client.linked(client.uris[relax], line, [client.source, above])
        assert places[client.source] == [RELU - 1]
        assert places[above]
        kernels = [one.uri for one in client.tree.compiles[0].kernels]
        assert await client.linked(client.source, RELU - 1, kernels), "the line leads down to a kernel"


def test_the_debugger_steps_from_the_line_down_to_tir(net: Ran) -> None:
    seen = steps_down(net, RELU, 6, lambda name: "tir" in name or "kernel" in name)
    order = ["exported-program", "decomposed-program", "relax", "relax-lowered"]
    assert [name.partition(".")[0] for name in seen][: len(order)] == order
    assert len(seen) > len(order), seen
