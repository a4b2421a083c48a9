"""The thread from line to kernel on ten real models: nothing is lost on the way without a reason, both ways agree.

Each model runs once, forward and backward in train mode; some then in eval mode under `no_grad`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest
from irscope.ir.roofline import kernel_costs
from irscope.protocol import Origin, OutcomeKind
from irscope.provenance import SOURCE, Element, Provenance
from irscope.provenance.kernels import elements_of, kernels_by_line, output_code_of
from irscope.provenance.lines import trail_of
from irscope.store.store import Store
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.worker.client import Worker
from support import Ran, run_captured, run_forked, write

pytest.importorskip("transformers")

START = """\
import torch
import transformers as T
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None  # the kernels are generated, not compiled
torch.manual_seed(0)
TEXT = dict(vocab_size=99, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
IMAGE = dict(image_size=16, patch_size=4)


def ids(length):
    return torch.randint(3, 99, (2, length))


def image():
    return torch.randn(2, 3, 16, 16)


"""
END = """

@torch.compile
def step(**inputs):
    out = model(**inputs)[0]
    scaled = out * 0.5
    return (scaled * scaled).mean()


model.train()
step(**inputs).backward()
"""
EVAL = """
model.eval()
with torch.no_grad():
    step(**inputs)
"""
MODELS = {
    "bert": "model = T.BertModel(T.BertConfig(**TEXT))\ninputs = dict(input_ids=ids(8))",
    "gpt2": "model = T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2))\n"
    "inputs = dict(input_ids=ids(8))",
    "llama": "model = T.LlamaForCausalLM(T.LlamaConfig(**TEXT, num_key_value_heads=1))\ninputs = dict(input_ids=ids(8))",
    "t5": "model = T.T5Model(T.T5Config(vocab_size=99, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2))\n"
    "inputs = dict(input_ids=ids(8), decoder_input_ids=ids(4))",
    "vit": "model = T.ViTModel(T.ViTConfig(**{**TEXT, **IMAGE}))\ninputs = dict(pixel_values=image())",
    "mamba": "model = T.MambaModel(T.MambaConfig(vocab_size=99, hidden_size=16, state_size=4, num_hidden_layers=1))\n"
    "inputs = dict(input_ids=ids(8))",
    "deberta": "model = T.DebertaV2Model(T.DebertaV2Config(**TEXT, relative_attention=True, pos_att_type=['p2c', 'c2p']))\n"
    "inputs = dict(input_ids=ids(8))",
    "mixtral": "model = T.MixtralModel(T.MixtralConfig(**TEXT, num_key_value_heads=1, num_local_experts=2))\n"
    "inputs = dict(input_ids=ids(8))",
    "clip": "model = T.CLIPTextModel(T.CLIPTextConfig(**TEXT))\ninputs = dict(input_ids=ids(8))",
    "convnext": "model = T.ConvNextModel(T.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2))\n"
    "inputs = dict(pixel_values=image())",
}
NUMBERS = """\
model = T.Qwen2ForCausalLM(T.Qwen2Config(**TEXT, num_key_value_heads=1))
inputs = dict(input_ids=ids(8), attention_mask=torch.ones(2, 8, dtype=torch.long))
"""
GRAPHS = frozenset({"dynamo-graph", "pre-grad-graph", "joint-graph", "forward-graph", "backward-graph", "inference-graph",
          "post-grad-graph", "ir-pre-fusion", "ir-post-fusion", "output-code"})  # fmt: skip


OF_VERSIONS = {
    "mixtral": pytest.mark.skipif(
        tuple(map(int, version("transformers").split(".")[:2])) < (5, 18),
        reason="in transformers 5.17 Inductor gives up on its grouped products of matrices, and Dynamo breaks there",
    ),
    "t5": pytest.mark.since_torch("2.13", "Dynamo breaks where T5 copies its configuration"),
}
NAMES = [pytest.param(name, marks=[*filter(None, [OF_VERSIONS.get(name)])]) for name in MODELS]


@pytest.mark.nightly  # a model of language with symbols is below, and asks the same
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_without_a_reason(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    both = name in ("vit", "mamba")
    script = write(tmp_path, START + MODELS[name] + END + (EVAL if both else ""), f"{name}.py")
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    assert len(ran.report.compiles) == 1 + both and ran.kernels("cpp")
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        check_ends(ran, thread, GRAPHS if both else GRAPHS - {"inference-graph"})
        check_kernels(ran, thread, store)
        check_lines(ran, thread, script)
        check_paths(ran, script)
        numbers = [number for number, line in enumerate(script.read_text().split("\n"), 1) if "* 0.5" in line]
        trail = trail_of(store, ran.report, str(script), numbers[0])
        assert {kernel.compile for kernel in trail.kernels} == {compile.id for compile in ran.report.compiles}


def test_sizes_and_numbers_that_are_symbols(tmp_path: Path, shared_worker: Worker | None) -> None:
    """AOTAutograd makes tensors of the numbers; forward and backward are compiled at once."""
    script = write(
        tmp_path, START + NUMBERS + END.replace("@torch.compile", "@torch.compile(dynamic=True)"), "model.py"
    )
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    assert ran.report.capture_gaps == ()
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        check_ends(ran, thread, GRAPHS - {"inference-graph"})
        check_kernels(ran, thread, store)
        check_lines(ran, thread, script)
        versions = [stage.id for stage in ran.compile("0/0").stages if stage.passed and stage.name == "joint-graph"]
        assert versions[0] == "0/0/joint-graph/01-tensorify_python_scalars"
        assert [int(id.rpartition("/")[2][:2]) for id in versions] == list(range(1, len(versions) + 1))
        text = ran.text("0/0/joint-graph").split("\n")
        made = [one for one in thread.elements("0/0/forward-graph") if one.name.startswith("add_tensor")]
        for one in made:  # the norms' eps: the sum itself, and its number
            rows = [text[parent.line - 1] for parent in thread.parents(one)]
            assert len(rows) == 2 and all("_local_scalar_dense" in row for row in rows), one
        assert len(made) == 3
        fates = {one.name: thread.fate(one) for one in thread.elements("0/0/pre-grad-graph")}
        assert fates["_set_grad_enabled"] == "sets a mode in which AOTAutograd traces what follows it"
        check_flops(store, ran)


def check_flops(store: Store, ran: Ran) -> None:
    """By hand, with the sizes that the symbols stood for: 2 texts of 8, 2 heads of 8, 16 wide, 99 words."""
    flops: dict[str, int] = defaultdict(int)
    for cost in kernel_costs(store, ran.report, None):
        flops[f"{cost.name} {'backward' in cost.stage}"] += cost.flops or 0
    attention = "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"
    biased, plain = 2 * 16 * 16 * (16 + 8 + 8), 2 * 16 * 16 * (4 * 16 + 99)
    product = 2 * (2 * 2) * 8 * 8 * 8  # of queries and keys, or weights and values
    rotary = 2 * 4 * 1 * 8  # frequencies by positions: 2.11 was seen with a library's call for them and without
    assert flops == {
        **dict.fromkeys(flops, 0),
        "extern_kernels.addmm False": biased,
        "extern_kernels.mm False": plain,
        "extern_kernels.mm True": 2 * (biased + plain),
        f"{attention}.default False": 2 * product,
        f"{attention}_backward.default True": 5 * product,
        **{name: rotary for name in flops if name == "extern_kernels.bmm False"},
    }


def check_ends(ran: Ran, thread: Provenance, stages: frozenset[str]) -> None:
    """Whatever stands in a stage came from something, and became something, or there is a reason."""
    lost = []
    seen = set()
    for compile in ran.report.compiles:
        for stage in thread.pipeline(compile.id):
            if stage.name not in GRAPHS:
                continue
            seen.add(stage.name)
            for element in thread.elements(stage.id):
                if not thread.children(element) and not thread.fate(element):
                    lost.append(("became nothing", stage.id, element.name))
                if not thread.parents(element) and not element.name.startswith(("tangents_", "output")):
                    lost.append(("came from nothing", stage.id, element.name))
    assert lost == []
    assert seen == stages


def check_paths(ran: Ran, script: Path) -> None:
    """Every kernel has a module and a line of the library, and the lines that call the compiled code lead to it."""
    lines = script.read_text().split("\n")
    (training,) = (number for number, line in enumerate(lines, 1) if line.endswith(".backward()"))
    by_line = kernels_by_line(ran.report)
    backward = [one for one in ran.report.kernels if "-backward" in one.stage]
    forward = [one for one in ran.report.kernels if one.compile == "0/0" and one not in backward]
    assert by_line[Origin(str(script), training)] == [*forward, *backward]
    for kernel in ran.report.kernels:
        inner = kernel.innermost
        assert inner is not None and kernel.module_class, kernel
        assert kernel in by_line[inner]
        of_step = kernel.module == ""  # the user's function around the model
        assert is_user_file(inner.file) is of_step, kernel


def check_kernels(ran: Ran, thread: Provenance, store: Store) -> None:
    """Every kernel has a line of the user; and all lines and nodes that PyTorch itself tells of it are ours, too."""
    compared = 0
    for kernel in ran.report.kernels:
        code, elements = output_code_of(thread.codes, kernel), elements_of(thread, kernel)
        assert elements, kernel
        origins = {origin for element in elements for origin in thread.origins(element)}
        # PyTorch's stacks begin anew inside some decorators; the line is then that of the package.
        assert origins and all(is_user_file(origin.file) or is_package_file(origin.file) for origin in origins), kernel
        assert kernel.origins and set(kernel.origins) <= origins, kernel
        told = store.stage_data(ran.report.run, code).get("mappings", {}).get("cppCodeToPost", {})
        # Of a backward that is compiled right behind its forward it tells the forward's calls, too.
        calls = re.findall(rf"\b{re.escape(kernel.name)}:\d+\b", ran.text(code))
        nodes = {name for handle in calls for name in told.get(handle, ())}
        assert nodes <= above(thread, elements, "post-grad-graph"), kernel
        compared += bool(nodes)
    assert compared > 0


def above(thread: Provenance, elements: list[Element], name: str) -> set[str]:
    found, todo = set(), list(elements)
    while todo:
        for parent in thread.parents(todo.pop()):
            if f"/{name}" in parent.stage:
                found.add(parent.name)
            elif parent.stage != SOURCE:
                todo.append(parent)
    return found


def check_lines(ran: Ran, thread: Provenance, script: Path) -> None:
    """Down from a line and up again one is at the line."""
    lines = {
        (origin.file, origin.line)
        for compile in ran.report.compiles
        for stage in thread.pipeline(compile.id)
        if stage.name == "dynamo-graph"
        for element in thread.elements(stage.id)
        for origin in thread.origins(element)
    }
    assert len(lines) >= 3 and str(script) in {file for file, _ in lines}
    for file, line in lines:
        start = thread.source(file, line)
        ends = [element for elements in thread.below(start).values() for element in elements]
        assert ends
        for element in ends:
            assert (file, line) in {(origin.file, origin.line) for origin in thread.origins(element)}, element
    check_up_and_down(ran, thread)


def check_up_and_down(ran: Ran, thread: Provenance) -> None:
    """Up to a line from wherever something stands, and down again: one is where one was, among others."""
    below: dict[Origin, set[Element]] = {}
    compared = 0
    for compile in ran.report.compiles:
        for stage in thread.pipeline(compile.id):
            for element in thread.elements(stage.id) if stage.name in GRAPHS else ():
                for origin in thread.origins(element):
                    if origin not in below:
                        found = thread.below(thread.source(origin.file, origin.line))
                        below[origin] = {one for elements in found.values() for one in elements}
                    assert element in below[origin], (element, origin)
                    compared += 1
    assert compared > 100


HARD = """\
import os, torch

def f(x, weight, index, source):
    h = x @ weight
    h = h + source
    h += x
    h[0] = 1.0
    kept = torch.zeros(4, 4).scatter_reduce(0, index, h, "amax")
    put = kept.index_put((index[0],), source[:4], accumulate=True)
    once = put.ne(3)
    again = put.ne(3)
    return (put * once + put * again).sum()


torch._inductor.config.trace.enabled = True  # as TORCH_COMPILE_DEBUG does
torch._dynamo.config.debug_dir_root = os.path.join(os.path.dirname(__file__), "torch_compile_debug")
x, weight, source = (torch.randn(4, 4, requires_grad=True) for _ in range(3))
index = torch.randint(0, 4, (4, 4))
torch.compile(f)(x * 2, weight, index, source).backward()
"""


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    folder = tmp_path_factory.mktemp("hard")
    ran = run_forked(write(folder, HARD, "hard.py"), folder / "runs.db", "deep")
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    assert ran.report.capture_gaps == ()
    return ran, folder


def test_the_files_that_pytorch_writes_for_debugging(hard: tuple[Ran, Path]) -> None:
    """The texts of stages are those of ``TORCH_COMPILE_DEBUG``, whose graphs tell no strides and devices."""
    ran, folder = hard
    files = {
        "ir_pre_fusion.txt": "ir-pre-fusion", "ir_post_fusion.txt": "ir-post-fusion", "output_code.py": "output-code",
        "fx_graph_transformed.py": "post-grad-graph",
    }  # fmt: skip
    compared = []
    with Store(ran.store) as store:
        for path in sorted(folder.glob("torch_compile_debug/*/torchinductor/model__*/*")):
            if path.name in files:
                stage = f"0/0/{files[path.name]}{'-backward' * ('_backward_' in path.parent.name)}"
                text = store.stage_text(ran.report.run, stage)
                if "graph" in stage:
                    text = re.sub(r'(: "\w+\[[\d, ]*\])\[[\d, ]*\]cpu"', r'\1"', text)
                assert text.strip() == path.read_text().strip(), stage
                compared.append(stage)
    assert len(compared) == len(set(compared)) == 8


def test_operations_that_are_hard_to_follow(hard: tuple[Ran, Path]) -> None:
    """In place, replaced by one of a pass, computed once for two lines, calls of which PyTorch names no nodes."""
    ran, folder = hard
    script = folder / "hard.py"
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        check_ends(ran, thread, GRAPHS - {"inference-graph"})
        check_up_and_down(ran, thread)
        kernels: dict[str, set[str]] = {}
        for number, text in enumerate(HARD.split("\n"), 1):
            trail = trail_of(store, ran.report, str(script), number)
            kernels[text.strip()] = {kernel.name for kernel in trail.kernels}
            if " = " in text or "+=" in text:
                if number < 14:
                    assert any(step.nodes for step in trail.steps), text
        for line in ("h = x @ weight", "h = h + source"):  # one call of a library for both
            assert "extern_kernels.addmm" in kernels[line]
        for line in ("h += x", "h[0] = 1.0"):
            assert "aten.scatter_reduce_.two" in kernels[line]
        trail = trail_of(store, ran.report, str(script), HARD.split("\n").index("    again = put.ne(3)") + 1)
        assert "the same as ne: computed once" in {place.fate for step in trail.steps for place in step.places}


PARTS = """\
import torch
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None  # the kernels are generated, not compiled


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 16, 8))
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x, at, other):
        key = x @ self.weight
        self.keys[:, at] = key
        self.keys.index_copy_(1, at, key * 2)
        other = other.select_scatter(key[0, 0].cos(), 0, 1)
        other = torch.slice_scatter(other, key[0, :1] * 2, 0, 2, 3)
        other[3] = key[1, 0] + 1
        other[:, 0:2] = 0.5
        seen.copy_(other)
        diagonal = torch.zeros(8, 8).diagonal_scatter(key[0, 0], 0)
        return (self.keys.transpose(1, 2) @ self.keys).softmax(-1).sum() + (diagonal @ diagonal).sum(), other * 3


seen = torch.zeros(8, 8)
with torch.no_grad():
    torch.compile(Cache())(torch.randn(2, 3, 8), torch.tensor([1, 2, 3]), torch.randn(8, 8))
"""


def test_writes_into_parts_of_tensors(tmp_path: Path, shared_worker: Worker | None) -> None:
    """What the pass that works in place, where it can, makes of scatters and copies keeps its lines."""
    script = write(tmp_path, PARTS, "parts.py")
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        check_ends(ran, thread, GRAPHS - {"joint-graph", "forward-graph", "backward-graph"})
        check_up_and_down(ran, thread)
        assert "index_put_" in ran.text("0/0/post-grad-graph")
        for number, text in enumerate(PARTS.split("\n"), 1):
            if "scatter" in text or "copy_(" in text or "] = " in text:
                assert trail_of(store, ran.report, str(script), number).kernels, text


INNER = """\
import torch
from torch._inductor.async_compile import AsyncCompile
from torch.utils.checkpoint import checkpoint

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None  # the kernels are generated, not compiled


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x  # @forward

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (x * 3).cos() * grad  # @backward


def block(x):
    return x.tanh() @ weight  # @checkpoint


@torch.compile
def step(x):
    h = Cube.apply(x @ weight)  # @apply
    h = checkpoint(block, h, use_reentrant=False)
    return (h.exp() * 2).sum()  # @behind


weight = torch.randn(8, 8, requires_grad=True)
step(torch.randn(4, 8)).backward()
"""


@pytest.mark.since_torch("2.11", "AOTAutograd gives what an autograd function runs the line of its call")
def test_graphs_that_nodes_of_dynamo_s_graph_run(tmp_path: Path, shared_worker: Worker | None) -> None:
    """Lines inside of an autograd function and of a checkpoint lead to their own nodes, and to nobody else's."""
    script = write(tmp_path, INNER, "inner.py")
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        check_ends(ran, thread, GRAPHS - {"inference-graph"})
        check_kernels(ran, thread, store)
        check_up_and_down(ran, thread)
        reached = {}
        for mark in ("forward", "backward", "checkpoint", "apply", "behind"):
            (number,) = (at for at, line in enumerate(INNER.split("\n"), 1) if f"@{mark}" in line)
            below = thread.below(thread.source(str(script), number))
            reached[mark] = {
                thread.item(one).target.split(".")[3]
                for one in below["0/0/joint-graph"]
                if "." in thread.item(one).target
            }
    assert {"mul"} <= reached["forward"] <= {"mul", "empty"}
    assert {"cos", "mul"} <= reached["backward"] <= {"cos", "mul", "_to_copy"}
    assert {"tanh", "mm"} <= reached["checkpoint"] and reached["checkpoint"].isdisjoint({"cos", "exp"})
    assert {"cos", "mul", "mm"} <= reached["apply"] and reached["apply"].isdisjoint({"tanh", "exp"})
    assert "exp" in reached["behind"] and reached["behind"].isdisjoint({"cos", "tanh"})
