"""What the deep lane keeps beside PyTorch's trace, against what PyTorch says itself in a run without irscope.

The kernels are generated, not compiled: the scripts put an empty function in their place, in both runs, so that no time
goes into the C++ compiler.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from irscope.ir.graphs import parse_graph
from irscope.ir.nodes import facts_of, lines_of
from irscope.pipelines.registry import stage_kind
from irscope.protocol import StageRef
from irscope.provenance import Provenance
from irscope.provenance.lines import trail_of
from irscope.store.store import Store
from support import Ran, lines_marked, log_as, run_forked, run_plain_forked, write
from versions import torch_version

MODELS = """\
import torch
import transformers as T
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None
torch.manual_seed(0)
TEXT = dict(vocab_size=99, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
SMALL = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
IDS = torch.arange(16).view(2, 8)


def bert():
    with torch.no_grad():
        torch.compile(T.BertModel(T.BertConfig(**TEXT)).eval())(input_ids=IDS)


def gpt2():
    model = T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2))
    torch.compile(model, dynamic=True)(input_ids=IDS, labels=IDS).loss.backward()


def llama():
    with torch.no_grad():
        torch.compile(T.LlamaForCausalLM(T.LlamaConfig(**TEXT, num_key_value_heads=1)).eval())(input_ids=IDS)


def t5():
    model = T.T5Model(T.T5Config(vocab_size=99, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)).eval()
    with torch.no_grad():
        torch.compile(model)(input_ids=IDS, decoder_input_ids=IDS)


def mlp():
    with torch.no_grad():
        torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()))(torch.ones(2, 8))


def vit():
    model = T.ViTModel(T.ViTConfig(**SMALL, image_size=8, patch_size=4)).eval()
    with torch.no_grad():
        torch.compile(model)(pixel_values=torch.ones(2, 3, 8, 8))


for run in (RUNS):
    run()
"""
ALL_MODELS = ("bert", "gpt2", "llama", "t5", "vit")
LOGS = "graph_code,aot_graphs,post_grad_graphs,ir_pre_fusion,ir_post_fusion,output_code"
PROVENANCE = "import torch._inductor.config\ntorch._inductor.config.trace.provenance_tracking_level = 1\n"
# artifact of TORCH_LOGS → the stages with that text, in the order of the log, of a compile's forward and its backward
STAGES = {
    "graph_code": ("dynamo-graph",),
    "aot_graphs": ("inference-graph", "forward-graph", "backward-graph"),
    "post_grad_graphs": ("post-grad-graph", "post-grad-graph-backward"),
    "ir_pre_fusion": ("ir-pre-fusion", "ir-pre-fusion-backward"),
    "ir_post_fusion": ("ir-post-fusion", "ir-post-fusion-backward"),
    "output_code": ("output-code", "output-code-backward"),
}
_LINE = re.compile(
    r"^(?P<head>[VDI]\d{4} .*?\] (?:\[(?P<compile>\d+/\d+)(?:_\d+)?\] )?\[__(?P<log>\w+)\]) ?(?P<text>.*)$"
)


@dataclass(frozen=True)
class Both:
    """Some models twice, each time with cold caches: under capture, and as plain Python that logs."""

    captured: Ran
    logged: dict[str, dict[str, list[str]]]
    """Compile → artifact of ``TORCH_LOGS`` → its messages."""
    models: tuple[str, ...]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("mlp",), id="mlp"),
        pytest.param(("gpt2",), id="gpt2", marks=pytest.mark.nightly),  # with a backward and dynamic shapes
        pytest.param(ALL_MODELS, id="all", marks=pytest.mark.nightly),
    ],
)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models")
    script = write(folder, MODELS.replace("(RUNS)", f"({', '.join(request.param)},)"))
    cold = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "captured")}
    captured = run_forked(script, folder / "runs.db", "deep", env=cold)
    cold = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "plain")}
    plain = run_plain_forked(script, before=log_as({**cold, "TORCH_LOGS": LOGS}) + PROVENANCE)
    assert plain.returncode == 0, plain.stderr[-3000:]
    return Both(captured, messages(plain.stderr), request.param)


def messages(log: str) -> dict[str, dict[str, list[str]]]:
    """A message has several lines, all with one head."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    last = ""
    for line in log.split("\n"):
        if match := _LINE.match(line):
            texts = found[match["compile"] or ""][match["log"]]
            if match["head"] != last or not texts:
                texts.append("")
            texts[-1] += re.sub(r"\x1b\[[\d;]*m", "", match["text"]) + "\n"
            last = match["head"]
    return found


def graph_text(text: str) -> str:
    """A printed graph without its title and without what two ways of printing it do not share: the log breaks no long
    signature into lines, has no comments in it, and prints products of symbols without spaces."""
    text = text[text.index("class ") :]
    text = re.sub(r"  # \w+(\(.*\))?$", "", text, flags=re.MULTILINE)
    text = re.sub(r"Sym\(.*?\)\"", lambda symbol: symbol[0].replace(" * ", "*"), text)
    return re.sub(r",? ?([)\]])", r"\1", re.sub(r"\s+", " ", text)).replace("( ", "(").strip()


def plain_text(text: str) -> str:
    """Without titles and without spaces at the ends of lines."""
    text = re.sub(r"^(BEFORE|AFTER) FUSION\n|^Output code: *\n", "", text, flags=re.MULTILINE)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n")


def test_the_texts_of_models_are_pytorch_s_own(both: Both) -> None:
    ran = both.captured
    assert ran.report.outcome.message == "The script ran to its end."
    assert ran.report.capture_gaps == ()
    compared = 0
    for compile in ran.report.compiles:
        ids = {stage.id for stage in compile.stages}
        for log, names in STAGES.items():
            ours = [ran.text(id) for name in names if (id := f"{compile.id}/{name}") in ids]
            theirs = both.logged[compile.id.partition("#")[0]][log]
            normal = graph_text if log in ("graph_code", "aot_graphs", "post_grad_graphs") else plain_text
            # Others of these logs tell metadata, or the file that the code was written to.
            theirs = [
                text
                for text in theirs
                if re.search(r"^ ===== |^(BEFORE|AFTER) FUSION|^Output code:", text, re.MULTILINE)
            ][-len(ours) :]  # those before are of attempts that were given up
            assert [normal(text) for text in ours] == [normal(text) for text in theirs], (compile.id, log)
            compared += len(ours)
    assert compared >= 6 * len(both.models)


# --- one small model, all the way down --------------------------------------------------------------------------------

SMALL = """\
import torch
import torch._inductor.config as config
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None


def sin_to_cos(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.sin.default:
            node.target = torch.ops.aten.cos.default


config.post_grad_custom_pre_pass = sin_to_cos
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 16))
        self.back = torch.nn.Parameter(torch.randn(16, 8))

    def forward(self, x):
        h = torch.nn.functional.gelu(x @ self.weight)  # @matmul
        h = torch.softmax(h.sin(), -1)
        h = (h * h.sum(0)) @ self.back
        return (torch.cat([h, h.t().contiguous().view(4, 8)]) * 2).cumsum(1).sum()


x = torch.randn(4, 8)
loss = torch.compile(Net())(x)
print(sorted(saved.untyped_storage().nbytes() for saved in loss.grad_fn.saved_tensors))
loss.backward()
"""
GRAPHS = (
    "dynamo-graph", "pre-grad-graph", "joint-graph", "forward-graph", "backward-graph", "post-grad-graph",
    "post-grad-graph-backward",
)  # fmt: skip
LOWERED = ("", "-backward")


@dataclass(frozen=True)
class Small:
    ran: Ran
    code: list[str]
    """The output code of a run without irscope and without provenance: the forward's and the backward's."""

    def text(self, stage: str) -> str:
        return self.ran.text(f"0/0/{stage}")

    def data(self, stage: str) -> Any:
        with Store(self.ran.store) as store:
            return store.stage_data(self.ran.report.run, f"0/0/{stage}")

    def versions(self, stage: str) -> list[StageRef]:
        return [ref for ref in self.ran.compile("0/0").stages if ref.id.startswith(f"0/0/{stage}/") and ref.passed]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("small")
    script = write(folder, SMALL)
    cold = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "captured")}
    ran = run_forked(script, folder / "runs.db", "deep", env=cold)
    told = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "plain"), "TORCH_LOGS": "output_code"}
    plain = run_plain_forked(script, before=log_as(told))
    logged = messages(plain.stderr)["0/0"]["output_code"]
    assert ran.report.outcome.message == "The script ran to its end."
    assert ran.report.capture_gaps == ()
    assert ran.stdout == plain.stdout
    return Small(ran, [text for text in logged if text.startswith("Output code:")])


def test_capture_changes_no_kernel(small: Small) -> None:
    """Provenance, which the deep lane turns on, adds comments to the code around the kernels, and nothing else."""
    ours = [without_comments(small.text(f"output-code{which}")) for which in LOWERED]
    assert ours == [without_comments(plain_text(text)) for text in small.code]
    kernels = [stage for stage in small.ran.compile("0/0").stages if stage.name == "kernel"]
    assert len(kernels) == 6
    assert all(any(small.ran.text(kernel.id) in text for text in small.code) for kernel in kernels)


def without_comments(code: str) -> str:
    return re.sub(r"^ *#(?!include|pragma|define|if|end|else).*\n", "", plain_text(code), flags=re.MULTILINE)


def test_a_version_for_each_pass_that_changed_the_graph(small: Small) -> None:
    for which in LOWERED:
        start, custom = small.versions(f"post-grad-graph{which}")
        assert (start.passed, custom.passed) == ("start", "post_grad_custom_pre_pass(sin_to_cos)")
        before, after = small.ran.text(start.id), small.ran.text(custom.id)
        assert before != after == before.replace("aten.sin.default(", "aten.cos.default(")
        assert after == small.text(f"post-grad-graph{which}")  # nothing changed it later
        data = small.data(custom.id.removeprefix("0/0/"))
        assert (data["changed"], data["added"], data["removed"], data["moved"]) == (["sin"], [], [], False)
        assert [node.target for node in facts_of(data["new"])] == ["aten.cos.default"]
        ran = small.data(f"post-grad-graph{which}")["passes"]
        assert [run["pass"] for run in ran if run["changed"]] == [custom.passed]
        assert {"remove_noop_ops", "stable_sort", "reinplace_inplaceable_ops"} <= {run["pass"] for run in ran}
        assert all(0 < run["seconds"] < 60 for run in ran)


def test_what_a_pass_removed_is_gone_from_its_version(small: Small) -> None:
    text = small.text("joint-graph")
    versions = small.versions("joint-graph")
    assert versions
    for version in versions:
        data, after = small.data(version.id.removeprefix("0/0/")), small.ran.text(version.id)
        before, text = set(lines_of(text)), after
        assert before - set(lines_of(after)) == set(data["removed"])
        assert set(lines_of(after)) - before == set(data["added"])
        assert data["removed"] or data["added"] or data["changed"] or data["moved"]


@pytest.mark.parametrize("stage", GRAPHS)
def test_facts_of_nodes_are_those_of_the_printed_graph(small: Small, stage: str) -> None:
    text = small.text(stage)
    facts = {node.name: node for node in facts_of(small.data(stage), text)}
    printed = {node.name: node for node in parse_graph(text).nodes if node.op not in ("placeholder", "output")}
    assert printed
    assert {name for name, node in facts.items() if node.op not in ("placeholder", "output")} == set(printed)
    for name, node in printed.items():
        fact = facts[name]
        assert (fact.line, set(fact.inputs)) == (node.line, known(node.inputs, facts))
        dtype, sizes, strides = re.match(r"(\w+)\[(.*?)\]\[(.*?)\]", node.detail).groups()  # type: ignore[union-attr]
        assert list(map(str, fact.value.sizes)) == [size for size in sizes.split(", ") if size]
        assert list(map(str, fact.value.strides)) == [stride for stride in strides.split(", ") if stride]
        assert (fact.value.dtype, fact.value.device) == ({"f32": "float32"}[dtype], "cpu")
        assert fact.value.bytes == 4 * math.prod(fact.value.sizes)
        assert node.origin is None or node.origin.line in {frame.line for frame in fact.stack}


def known(names: tuple[str, ...], facts: Mapping[str, object]) -> set[str]:
    """A printed dynamo graph names its inputs otherwise in its signature (``L_x_``) than below (``l_x_``)."""
    return {name if name in facts else name[0].lower() + name[1:] for name in names}


def test_costs_and_ancestors_of_a_matmul(small: Small) -> None:
    (line,) = lines_marked(SMALL, "@matmul")
    nodes = facts_of(small.data("post-grad-graph"), small.text("post-grad-graph"))
    (matmul,) = [node for node in nodes if node.target == "aten.mm.default" and node.stack[-1].line == line]
    assert matmul.flops == 2 * 4 * 8 * 16
    assert (matmul.read, matmul.written) == (4 * (4 * 8 + 8 * 16), 4 * 4 * 16)
    assert matmul.intensity == matmul.flops / (matmul.read + matmul.written)  # type: ignore[operator]
    assert matmul.original_aten == "aten.mm.default"
    dynamo = small.data("dynamo-graph")
    (source,) = matmul.sources
    assert source.graph == dynamo["graph"]
    assert source.name in dynamo["nodes"]["name"]
    backward = facts_of(small.data("backward-graph"))
    assert {node.seq_nr for node in backward if node.is_backward and node.target == "aten.mm.default"} >= {
        matmul.seq_nr
    }
    views = {node.target for node in nodes if node.is_view}
    assert "aten.permute.default" in views
    assert "aten.mm.default" not in views


def test_the_partition_is_what_autograd_holds(small: Small) -> None:
    data = small.data("partition")
    saved = sorted(entry["bytes"] for entry in data["saved"])
    assert str(saved) == small.ran.stdout.strip()
    assert data["bytes"]["activations"] + data["bytes"]["inputs"] == sum(saved)
    backward = {node.name: node for node in facts_of(small.data("backward-graph"))}
    forward = {node.name for node in facts_of(small.data("forward-graph"))}
    again = [entry["name"] for entry in data["recomputed"]]
    assert "erf" in again
    assert all(name in forward and not backward[name].is_backward for name in again)


@pytest.mark.parametrize("which", LOWERED, ids=["forward", "backward"])
def test_what_was_fused_leads_from_one_schedule_to_the_other(small: Small, which: str) -> None:
    before, after = (small.data(f"ir-{moment}-fusion{which}")["nodes"] for moment in ("pre", "post"))
    fusion = small.data(f"fusion{which}")
    groups = {node["name"]: {node["name"]} for node in before}
    for pair in fusion["fused"]:
        assert pair["score"]
        together = groups[pair["first"]["nodes"][0]] | groups[pair["second"]["nodes"][0]]
        assert together == {*pair["first"]["nodes"], *pair["second"]["nodes"]}
        groups.update(dict.fromkeys(together, together))
    assert fusion["fused"]
    assert {frozenset(group) for group in groups.values()} == {frozenset(node["parts"]) for node in after}
    for pair in fusion["refused"]:
        assert pair["reason"]
        first, second = (groups[pair[side]["nodes"][0]] for side in ("first", "second"))
        assert first.isdisjoint(second)
    assert len(fusion["refused"]) >= 1


@pytest.mark.parametrize("which", LOWERED, ids=["forward", "backward"])
def test_every_scheduler_node_ends_in_a_kernel(small: Small, which: str) -> None:
    nodes, data = small.data(f"ir-post-fusion{which}")["nodes"], small.data(f"output-code{which}")
    graph = {node.name: node for node in facts_of(small.data(f"post-grad-graph{which}"))}
    calls = {
        call["kernel"] if call["handle"] is None else f"{call['kernel']}:{call['handle']}": call
        for call in data["calls"]
    }
    handles = re.findall(r"# \[Provenance debug handles\] (\S+)", small.text(f"output-code{which}"))
    told = [name for name, call in calls.items() if call["handle"] is not None]
    assert told == handles
    if torch_version() >= (2, 11):  # 2.9 gives some library calls none
        assert len(told) == len(calls) == len(data["calls"])
    assert [call["kernel"] for call in data["calls"]] == [
        step["kernel"] for step in small.data(f"memory-plan{which}")["steps"]
    ]
    for node in nodes:
        computes = bool(node["reads"] or node["writes"])  # the rest names what a library's call returned
        assert (node["kernel"] in calls) == computes
        assert set(node["origins"]) <= set(graph)
        assert not computes or set(node["parts"]) <= set(calls[node["kernel"]]["nodes"])
    without = [node["kind"] for node in nodes if not node["kernel"]]
    # `buf11 = buf10` names the result of cumsum, a fallback; in torch 2.14 its call gives the buffer itself.
    named = re.findall(r"^ +buf\d+ = buf\d+$", small.text(f"output-code{which}"), re.MULTILINE)
    assert without.count("ExternKernelSchedulerNode") == len(named) == (1 if torch_version() < (2, 14) else 0)
    assert set(without) <= {"ExternKernelSchedulerNode", "NopKernelSchedulerNode"}
    for call in data["calls"]:
        flops = [count for name in call["origins"] if (count := graph[name].flops)]
        assert call["flops"] == (sum(flops) if flops else None)
        assert call["reads"] > 0
        assert call["writes"] > 0
    if not which:  # for a backward that is compiled later PyTorch gives no mappings
        theirs = data["mappings"]["cppCodeToPost"]
        generated = {name for name in calls if name.startswith("cpp_")}
        assert {name: set(calls[name]["origins"]) for name in generated} == {
            name: set(theirs[name]) for name in generated
        }


PRODUCTS = """\
import torch

@torch.compile
def f(x, w, v):
    y = torch.nn.functional.gelu(x @ w)
    return y @ v + 1

with torch.no_grad():
    f(*(torch.ones(64, 64) for _ in range(3)))
"""


def test_a_library_call_does_not_compute_what_it_reads(tmp_path: Path) -> None:
    """Inductor counts the GELU, which is not in memory yet when the second product is lowered, as the product's."""
    script = write(tmp_path, PRODUCTS)
    ran = run_forked(script, tmp_path / "runs.db", "deep")
    assert ran.report.capture_gaps == ()
    with Store(ran.store) as store:
        calls = store.stage_data(ran.report.run, "0/0/output-code")["calls"]
        trail = trail_of(store, ran.report, str(script), 5)
    libraries = [call for call in calls if call["kernel"].startswith("extern_kernels")]
    assert [call["origins"] for call in libraries] == [["mm"], ["mm_1"]]
    reached = {step.stage: [place.name for place in step.places] for step in trail.steps}
    assert reached["0/0/ir-pre-fusion"] == ["op0", "op1"]


TABLES = """\
import torch

words, places, rest = torch.ones(30_000, 64), torch.ones(512, 64), torch.ones(2, 16, 512)

@torch.compile
def f(ids):
    at = torch.arange(ids.shape[1])
    x = torch.nn.functional.embedding(ids, words) + torch.nn.functional.embedding(at, places) + rest[:, :, :64]
    return torch.nn.functional.layer_norm(x, (64,))

f(torch.zeros(2, 16, dtype=torch.int64))
"""


def test_of_a_table_a_kernel_reads_the_rows_that_it_takes(tmp_path: Path) -> None:
    """The loops of mean, deviation and result are fused, and each reads the rows; from memory they come once."""
    ran = run_forked(write(tmp_path, TABLES), tmp_path / "runs.db", "deep")
    with Store(ran.store) as store:
        (call,) = store.stage_data(ran.report.run, "0/0/output-code")["calls"]
    ids, words, places, rest = 2 * 16 * 8, 2 * 16 * 64 * 4, 16 * 64 * 4, 2 * 16 * 64 * 4
    assert call["reads"] == ids + words + places + rest


@pytest.mark.parametrize("which", LOWERED, ids=["forward", "backward"])
def test_the_memory_plan_is_that_of_the_output_code(small: Small, which: str) -> None:
    plan, code = small.data(f"memory-plan{which}"), small.text(f"output-code{which}")
    body = code[code.index("def call(self, args):") :].split("\n\n", 1)[0]
    allocated = re.findall(r"^ +(\w+) = empty_strided_cpu\(\(([\d, ]*)\)", body, re.MULTILINE)
    reused = re.findall(r"^ +(\w+) = (?:reinterpret_tensor\()?(\w+).*# reuse$", body, re.MULTILINE)
    found = {how: [b for b in plan["buffers"] if b["how"] == how] for how in ("allocated", "reuse", "extern")}
    sizes = [(name, 4 * math.prod(int(n) for n in shape.split(",") if n.strip())) for name, shape in allocated]
    assert [(buffer["name"], buffer["bytes"]) for buffer in found["allocated"]] == sizes
    assert [(buffer["name"], buffer["of"]) for buffer in found["reuse"]] == reused
    assert reused
    assert found["extern"]
    assert plan["peak"]["bytes"] == peak_of(body, {b["name"]: b["bytes"] for b in plan["buffers"]}, found["extern"])
    assert sum(b["bytes"] for b in plan["buffers"] if b["name"] in plan["peak"]["holds"]) == plan["peak"]["bytes"]
    returned = re.search(r"return \((.*?),? ?\)$", body, re.MULTILINE)
    assert returned
    assert [name for name in plan["outputs"] if name.startswith("buf")] == re.findall(r"\bbuf\d+\b", returned[1])
    if not which:  # what is kept for the backward comes last, in the partition's order
        graph = facts_of(small.data("forward-graph"))
        (output,) = (node for node in graph if node.op == "output")
        saved = [entry["name"] for entry in small.data("partition")["saved"]]
        assert len(plan["outputs"]) >= len(saved)
        assert set(saved) <= {*output.inputs}


def peak_of(body: str, sizes: dict[str, int], extern: list[dict[str, Any]]) -> int:
    """What the code's own buffers hold at most, by running through its lines."""
    live: dict[str, int] = {}
    peak = 0
    for line in body.split("\n"):
        if match := re.match(r" +(\w+) = empty_strided_cpu", line):
            live[match[1]] = sizes[match[1]]
        elif match := re.match(r" +(\w+) = (?:reinterpret_tensor\()?(\w+).*# reuse$", line):
            if match[2] in live:
                live[match[1]] = live.pop(match[2])
        elif (match := re.match(r" +(\w+) = ", line)) and match[1] in {buffer["name"] for buffer in extern}:
            live[match[1]] = sizes[match[1]]
        elif match := re.match(r" +del (\w+)$", line):
            live.pop(match[1], None)
        peak = max(peak, sum(live.values()))
    return peak


def test_back_ends_without_inductor(tmp_path: Path) -> None:
    """``aot_eager`` ends with AOTAutograd's graphs; of a function of the user's own there is Dynamo's graph alone."""
    source = """\
    import torch

    def mine(graph, inputs):
        return graph

    def f(x):
        return (x.sin() @ x).sum()

    x = torch.ones(4, 4, requires_grad=True)
    torch.compile(f, backend="aot_eager")(x).backward()
    torch._dynamo.reset()
    torch.compile(f, backend=mine)(x).backward()
    """
    ran = run_forked(write(tmp_path, source), tmp_path / "runs.db", "deep")
    assert ran.report.capture_gaps == ()
    graphs = [
        [s.name for s in c.stages if stage_kind(s.name).is_graph or s.name == "partition"] for c in ran.report.compiles
    ]
    assert graphs == [["dynamo-graph", "joint-graph", "partition", "forward-graph", "backward-graph"], ["dynamo-graph"]]
    with Store(ran.store) as store:
        for compile in ran.report.compiles:
            for stage in compile.stages:
                if stage_kind(stage.name).is_graph:
                    nodes = facts_of(store.stage_data(ran.report.run, stage.id), ran.text(stage.id))
                    assert any("matmul" in node.target or "mm" in node.target for node in nodes)


FROZEN = """\
import torch
import torch._inductor.config as config

config.freezing = True
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()


@torch.compile
def run(x):
    h = net[0](x)  # @conv
    return net[1](h)  # @relu


with torch.no_grad():
    run(torch.randn(2, 3, 8, 8))
"""


def test_with_parameters_as_constants_each_pass_is_seen_and_what_it_fused(tmp_path: Path) -> None:
    """Inductor's elimination of common subexpressions copies the graph meanwhile, which is no change."""
    ran = run_forked(write(tmp_path, FROZEN), tmp_path / "runs.db", "deep")
    assert ran.report.capture_gaps == ()
    versions = [one for one in ran.compile("0/0").stages if one.id.startswith("0/0/joint-graph/")]
    assert [one.passed for one in versions][:1] == ["replace_params_with_constants"]
    assert "between_passes" not in {one.passed for one in versions}
    assert "mkldnn._convolution_pointwise" in ran.text(versions[-1].id)
    assert "mkldnn._convolution_pointwise" not in ran.text(versions[0].id)
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        [call] = [one for one in thread.elements("0/0/output-code") if "_convolution_pointwise" in one.name]
        lines = {one.line for one in thread.origins(call) if one.file == ran.report.script}
    assert lines == {*lines_marked(FROZEN, "# @conv"), *lines_marked(FROZEN, "# @relu")}
