"""Runs of each pipeline in a client: listed, drawn, linked with the user's line, and stepped through by the debugger.

The seam itself, with its launch and its run from the editor, is in test_pipeline_seam.py; the systems that need packages of
their own are in tests/pipelines.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pipeline_client import row_of, shown, steps_down
from support import Ran, lines_marked, run_forked, write

pytestmark = pytest.mark.worker

_NET = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):
        return torch.relu(self.first(x))  # @here


fast = torch.compile(Net().eval())
with torch.no_grad():
    fast(torch.ones(2, 8))
"""
_SCALE = """\
import torch


def scale(x, w):
    y = x @ w
    return torch.relu(y) + 1  # @here


fast = torch.compile(scale)
print(fast(torch.ones(2, 3), torch.ones(3, 4)).sum())
"""
_BACKEND = """\
import torch


def backend(graph, inputs):
    for node in graph.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.sigmoid
    graph.recompile()
    return graph


@torch.compile(backend=backend)
def scale(x):
    y = torch.relu(x)  # @here
    return y * 2


scale(torch.ones(3))
"""
_PRUNED = _NET.replace("import torch\n", "import torch\nfrom torch.nn.utils import prune\n", 1).replace(
    "fast = torch.compile(Net().eval())",
    'net = Net().eval()\nprune.l1_unstructured(net.first, "weight", amount=0.5)\nfast = torch.compile(net)',
)
_GRAPH = ("Dynamo graph", True, "Dynamo")
_INDUCTOR_TITLES = (("Post-grad graph", True, "Inductor"),)
_IR = ("post-grad-graph.py", "ir-pre-fusion.py", "ir-post-fusion.py")


@dataclass(frozen=True)
class Case:
    """A script, and what a client has to show of its run.

    Args:
        script: Its ``# @here`` is the line in question.
        titles: Stages in their order, with whether they are graphs, and their groups.
        graphs: The graphs on the way down.
        nodes: Of the graph ``drawn``, in their order.
        document: A stage and a part of its text.
        here: A stage and a part of its row that came from the line.
        linked: The rows of another stage that belong to that row.
        down: Where the debugger comes to from the line, the last of it included.
        printed: What the script prints.
    """

    pipeline: str
    script: str
    titles: tuple[tuple[str, bool, str], ...]
    graphs: tuple[str, ...]
    drawn: str
    nodes: tuple[str, ...]
    document: tuple[str, str]
    here: tuple[str, str]
    linked: tuple[str, str]
    down: tuple[str, ...]
    printed: str = ""

    @property
    def line(self) -> int:
        [line] = lines_marked(self.script, "# @here")
        return line


CASES = (
    Case(
        "export",
        _NET,
        titles=(
            ("Exported program", True, "torch.export"),
            ("Inputs and outputs", False, "torch.export"),
            ("Guards and dynamic shapes", False, "torch.export"),
            ("Exported program after decompositions", True, "torch.export"),
        ),
        graphs=("exported-program", "decomposed-program"),
        drawn="decomposed-program",
        nodes=("addmm", "relu"),
        document=("export-signature", "p_first_weight  parameter"),
        here=("decomposed-program", " relu: "),
        linked=("exported-program", " relu: "),
        down=("exported-program.py", "decomposed-program.py"),
    ),
    Case(
        "torchscript",
        _SCALE,
        titles=tuple(
            (f"{name} graph", True, "TorchScript") for name in ("Inlined", "Frozen", "Profiled", "Optimized")
        ),
        graphs=tuple(f"torchscript-{name}" for name in ("inlined", "frozen", "profiled", "optimized")),
        drawn="torchscript-optimized",
        nodes=("y", "relu", "add", "output"),  # a value has its variable's name
        document=("torchscript-ir", "aten::relu(%y)"),
        here=("torchscript-optimized", "aten.relu("),
        linked=("torchscript-inlined", "aten.relu("),
        down=("torchscript-inlined.py", "torchscript-frozen.py", "torchscript-optimized.py"),
        printed="tensor(32.)\n",
    ),
    Case(
        "dynamo",
        _BACKEND,
        titles=(_GRAPH, ("What the backend did", False, "Backend"), ("Graph that the backend returned", True, "Backend")),
        graphs=("dynamo-graph", "backend-graph"),
        drawn="backend-graph",
        nodes=("y", "mul"),
        document=("backend-report", "Backend: backend"),
        here=("backend-graph", "y: \"f32[3]\" = torch.sigmoid("),
        linked=("dynamo-graph", "y: \"f32[3][1]cpu\" = torch.relu("),
        down=("script.py", "dynamo-graph.py", "backend-graph.py"),
    ),
    Case(
        "pruning",
        _PRUNED,
        titles=(_GRAPH, *_INDUCTOR_TITLES, ("Zeros and masks of parameters", False, "Pruning")),
        graphs=("dynamo-graph", "pre-grad-graph", "inference-graph", "post-grad-graph", "ir-pre-fusion", "ir-post-fusion"),
        drawn="dynamo-graph",
        nodes=("pruned_tensor", "linear", "relu"),
        document=("sparsity", "first.weight"),
        here=("dynamo-graph", " * "),
        linked=("kernel/cpp_fused_mul_0", " * "),
        down=("dynamo-graph.py", *_IR, "kernel/cpp_fused_mul_0.cpp"),
    ),
    Case(
        "aotinductor",
        _NET,
        titles=(("Exported program", True, "torch.export"), *_INDUCTOR_TITLES, ("C++ wrapper", False, "AOTInductor")),
        graphs=("exported-program", "inference-graph", "post-grad-graph", "ir-pre-fusion", "ir-post-fusion"),
        drawn="post-grad-graph",
        nodes=("addmm",),
        document=("cpp-wrapper", "cpp_fused_relu_0("),
        here=("kernel/cpp_fused_relu_0", "clamp_min("),
        linked=("cpp-wrapper", "    cpp_fused_relu_0("),
        down=(
            "exported-program.py", "inference-graph.py", *_IR, "cpp-wrapper.cpp", "kernel/cpp_fused_relu_0.cpp",
        ),
    ),
)  # fmt: skip
NIGHTLY = {
    # A compile takes half a minute.  `export` and `pruning` notice what the client makes of its stages, and
    # tests/worker/stages/test_aotinductor.py looks at one in `npm test`.
    "aotinductor"
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(one, id=one.pipeline, marks=[pytest.mark.nightly] * (one.pipeline in NIGHTLY)) for one in CASES
    ],
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture(scope="module")
def ran(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp(case.pipeline)
    return run_forked(write(folder, case.script), folder / "runs.db", lane="deep", pipeline=case.pipeline)


async def test_a_client_shows_it(case: Case, ran: Ran) -> None:
    assert ran.stdout == case.printed
    async with shown(ran) as client:
        assert client.tree.item.pipeline == case.pipeline
        told = iter((stage.title, stage.isGraph, stage.group) for stage in client.stages.values())
        assert all(one in told for one in case.titles), "in this order"
        assert client.graphs == [f"0/0/{name}" for name in case.graphs]
        nodes = iter(await client.nodes(f"0/0/{case.drawn}"))
        assert all(one in nodes for one in case.nodes), "in this order"
        stage, part = case.document
        document = await client.editor.request("irscope/document", uri=client.uris[f"0/0/{stage}"])
        assert part in document.text


async def test_its_rows_are_linked_with_the_line_and_with_each_other(case: Case, ran: Ran) -> None:
    (here, row), (other, other_row) = case.here, case.linked
    async with shown(ran) as client:
        among = [client.source, client.uris[f"0/0/{other}"]]
        found = await client.linked(client.uris[f"0/0/{here}"], row_of(ran, f"0/0/{here}", row), among)
        assert found[client.source] == [case.line - 1]
        assert row_of(ran, f"0/0/{other}", other_row) in found[among[1]]
        assert other.startswith("kernel/") or len(found[among[1]]) == 1, "and with no other row of a graph"


def test_the_debugger_steps_down_from_the_line(case: Case, ran: Ran) -> None:
    seen = steps_down(ran, case.line, 30, lambda name: name == case.down[-1])
    assert seen[-1] == case.down[-1], seen
    way = iter(seen)
    assert all(one in way for one in case.down), seen
    assert seen[0] in (case.down[0], "script.py")
