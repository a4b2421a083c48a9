"""Every stage of a small training step, word for word what PyTorch itself writes in a run without irscope."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from irscope.ir.graphs import parse_graph
from irscope.pipelines.registry import stage_kind
from support import Ran, lines_marked, log_as, run_forked, run_plain_forked, write

SCRIPT = """\
import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        h = x @ self.weight  # @extern
        h = torch.relu(h)  # @kernel
        return (h * 2).sum()  # @kernel


net = torch.compile(Net())
net(torch.randn(4, 8)).backward()
with torch.no_grad():
    net(torch.randn(4, 8))
"""

WITHOUT_CACHES = """\
import torch._functorch.config, torch._inductor.config

torch._inductor.config.trace.provenance_tracking_level = 1
torch._inductor.config.fx_graph_cache = torch._functorch.config.enable_autograd_cache = False
"""
TRAINING = [
    "bytecode", "dynamo-graph", "guards", "modified-bytecode", "pre-grad-graph", "joint-graph", "forward-graph",
    "backward-graph", "post-grad-graph", "output-code", "kernel", "post-grad-graph", "output-code", "kernel",
]  # fmt: skip
INFERENCE = [
    "bytecode", "dynamo-graph", "guards", "modified-bytecode", "pre-grad-graph", "inference-graph", "post-grad-graph",
    "output-code", "kernel",
]  # fmt: skip

# event of the trace → the stage that holds its payload, for the first and for a later occurrence in a compile
EVENTS = {
    "dynamo_output_graph": ("dynamo-graph", "dynamo-graph-2"),
    "dynamo_cpp_guards_str": ("guards", "guards-2"),
    "after_pre_grad_graph": ("pre-grad-graph", "pre-grad-graph-2"),
    "aot_joint_graph": ("joint-graph", "joint-graph-2"),
    "aot_forward_graph": ("forward-graph", "forward-graph-2"),
    "aot_backward_graph": ("backward-graph", "backward-graph-2"),
    "aot_inference_graph": ("inference-graph", "inference-graph-2"),
    "inductor_post_grad_graph": ("post-grad-graph", "post-grad-graph-backward"),
    "after_post_grad_graph": ("post-grad-graph", "post-grad-graph-backward"),  # its name in torch 2.9
    "inductor_output_code": ("output-code", "output-code-backward"),
}


@dataclass(frozen=True)
class Both:
    """The same script twice: under capture, and as plain Python that writes its trace and its bytecode log."""

    script: Path
    captured: Ran
    trace: dict[str, str]
    """Stage id → text as PyTorch wrote it into its trace."""
    log: str
    """The log of bytecode, without the prefix of each line."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("stages")
    script = write(folder, SCRIPT)
    captured = run_forked(script, folder / "runs.db", "deep")
    env = {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCH_LOGS": "bytecode",
    }
    plain = run_plain_forked(script, before=log_as(env) + WITHOUT_CACHES)
    assert plain.returncode == 0, plain.stderr
    (file,) = (folder / "trace").iterdir()
    log = re.sub(r"^V\d{4} .*? \[__bytecode\] ?", "", plain.stderr, flags=re.MULTILINE)
    return Both(script, captured, dict(stages_of_trace(file)), log)


def stages_of_trace(file: Path) -> Iterator[tuple[str, str]]:
    """Reads a TORCH_TRACE file: a line of JSON an event, its payload in the lines with a tab in front."""
    seen: dict[str, int] = {}
    for event in re.split(r"^(?=V\d{4} )", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, payload = event.partition("\n")
        facts = json.loads(head[head.index("{") :])
        names = {*facts, facts.get("artifact", {}).get("name")} & set(EVENTS)
        if names:
            (name,) = names
            base = f"{facts['frame_id']}/{facts['frame_compile_id']}/"
            number = seen[base + name] = seen.get(base + name, -1) + 1
            yield base + EVENTS[name][number], re.sub(r"^\t", "", payload, flags=re.MULTILINE)


def normal(text: str) -> str:
    """Without what differs from process to process: addresses, random names, and the time that a guard took."""
    text = re.sub(r"\s*\n # graph id: \d+\n?", "\n", text)  # in torch 2.9 behind a line of blanks
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r"_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}", "_UUID", text)
    text = re.sub(r"\b\d{9,}\b", "ID", text)
    text = re.sub(r"Guard latency = [\d.]+ us", "", text)
    return text.strip("\n")


def test_the_run_was_good(both: Both) -> None:
    assert both.captured.report.outcome.message == "The script ran to its end."
    assert both.captured.report.capture_gaps == ()
    assert [compile.id for compile in both.captured.report.compiles] == ["0/0", "0/1"]


def test_the_stages_in_their_order(both: Both) -> None:
    assert traced(both, "0/0") == TRAINING
    assert traced(both, "0/1") == INFERENCE


def traced(both: Both, compile: str) -> list[str]:
    """Names of the stages that come from the trace, without the versions that passes made of them."""
    stages = both.captured.compile(compile).stages
    return [stage.name for stage in stages if stage.name in {*TRAINING, *INFERENCE} and not stage.passed]


def test_the_texts_are_pytorch_s_own(both: Both) -> None:
    ours = {
        stage.id: normal(both.captured.text(stage.id))
        for compile in both.captured.report.compiles
        for stage in compile.stages
        if stage.name in {name for name, _ in EVENTS.values()} and not stage.passed
    }
    assert ours == {id: normal(text) for id, text in both.trace.items()}
    assert len(ours) == 16


def test_the_bytecode_is_pytorch_s_own(both: Both) -> None:
    for compile in ("0/0", "0/1"):
        for stage, title in (("bytecode", "ORIGINAL"), ("modified-bytecode", "MODIFIED")):
            text = normal(both.captured.text(f"{compile}/{stage}"))
            assert f"{title} BYTECODE forward" in both.log
            assert "RETURN_VALUE" in text
            assert _squeezed(text) in _squeezed(normal(both.log)), stage


def _squeezed(text: str) -> str:
    """The log pads its columns by itself."""
    return re.sub(r"\s+", " ", text).strip()


def test_each_kernel_is_in_its_output_code(both: Both) -> None:
    kernels = both.captured.kernels("cpp")
    assert len(kernels) == 3
    for kernel in kernels:
        assert kernel.stage.endswith("/" + kernel.name)
        suffix = "-backward" if "/kernel-backward/" in kernel.stage else ""
        code = both.captured.text(f"{kernel.compile}/output-code{suffix}")
        text = both.captured.text(kernel.stage)
        assert "void  kernel(" in text
        assert f"{kernel.name} = async_compile.cpp_pybinding(" in code
        assert text in code


def test_each_kernel_was_really_compiled(both: Both) -> None:
    """Inductor's own files: its C++ sources hold our kernels' texts."""
    sources = [path.read_text() for path in Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).rglob("*.cpp")]
    kernels = both.captured.kernels("cpp")
    assert len(kernels) == 3
    for kernel in kernels:
        body = both.captured.text(kernel.stage).partition("{")[2].strip()
        assert any(body in source for source in sources), kernel.name


def test_where_the_kernels_come_from(both: Both) -> None:
    file = str(both.script)
    generated, extern = lines_marked(SCRIPT, "@kernel"), lines_marked(SCRIPT, "@extern")
    for kernel in both.captured.kernels("cpp"):
        assert {origin.file for origin in kernel.origins} == {file}
        assert {origin.line for origin in kernel.origins} == generated
    for kernel in both.captured.kernels("extern"):
        assert kernel.name == "extern_kernels.mm"
        assert {(origin.file, origin.line) for origin in kernel.origins} == {(file, line) for line in extern}
    assert len(both.captured.kernels("extern")) == 3


def test_where_the_nodes_come_from(both: Both) -> None:
    """In every graph of every stage, each operation stands at a line of `forward`."""
    marked = lines_marked(SCRIPT, "@kernel") | lines_marked(SCRIPT, "@extern")
    graphs = 0
    for compile in both.captured.report.compiles:
        for stage in compile.stages:
            if stage_kind(stage.name).is_graph:
                nodes = parse_graph(both.captured.text(stage.id)).nodes
                calls = [node for node in nodes if node.op == "call"]
                assert calls
                assert {(node.origin.file, node.origin.line) for node in calls if node.origin} <= {
                    (str(both.script), line) for line in marked
                }
                assert all(node.origin for node in calls), stage.id
                graphs += not stage.passed
    assert graphs == 11


def test_the_compiles(both: Both) -> None:
    for compile in both.captured.report.compiles:
        assert compile.function == "forward"
        assert (compile.file, compile.line) == (
            str(both.script),
            SCRIPT.split("\n").index("    def forward(self, x):") + 1,
        )
        assert compile.outcome.value == "compiled"
        assert compile.graph_ops == 4
        assert compile.restarts == 0
        assert compile.seconds > 0
