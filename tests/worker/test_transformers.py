"""Real models (tiny, random weights): what irscope finds agrees with PyTorch's own logs, counters and reasons.

Each model is called with two sizes in the deep lane, with ``TORCH_LOGS=graph_breaks,recompiles`` on the script's
stderr and PyTorch's counters printed at its end.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from irscope.findings.guardtext import parse_failed_guard
from irscope.protocol import OutcomeKind
from support import Ran, lines_marked, run_captured, write

pytest.importorskip("transformers")

START = """\
import json
import torch
import transformers as T

torch.manual_seed(0)
text = dict(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=37)

def ids(batch, length):
    return torch.randint(3, 99, (batch, length))

"""
END = """
counters = torch._dynamo.utils.counters
print("COUNTERS", json.dumps({name: dict(counters[name]) for name in ("graph_break", "stats", "frames")}))
"""


@dataclass(frozen=True)
class Model:
    """A script, and how many findings of a kind, graphs and compiles it must give at the least."""

    source: str
    breaks: int
    recompilations: int


MODELS = {
    # The model itself is compiled: everything that is compiled lies in the library.
    "bert": Model(
        """\
model = torch.compile(T.BertModel(T.BertConfig(**text)).eval())
for length in (8, 12):
    with torch.no_grad():
        model(input_ids=ids(2, length))  # @call
""",
        breaks=0,
        recompilations=1,
    ),
    # A training step, in which the library logs a warning while it is traced.
    "gpt2": Model(
        """\
model = T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_embd=32, n_layer=1, n_head=4)).train()

@torch.compile
def step(tokens):
    loss = model(input_ids=tokens, labels=tokens).loss  # @break
    return loss * 1.0

for length in (8, 12):
    step(ids(2, length)).backward()  # @call
""",
        breaks=1,
        recompilations=2,
    ),
    # A branch on a value, a Python number that changes, and a size.
    "llama": Model(
        """\
model = T.LlamaForCausalLM(T.LlamaConfig(**text, num_key_value_heads=2)).eval()

@torch.compile
def score(tokens, temperature):
    logits = model(input_ids=tokens, use_cache=False).logits
    if logits.isnan().any():  # @break
        print("diverged")
    return torch.log_softmax(logits / temperature, -1).amax()

with torch.no_grad():
    for length, temperature in ((8, 1), (8, 2), (12, 2)):
        score(ids(2, length), temperature)  # @call
""",
        breaks=1,
        recompilations=2,
    ),
    "t5": Model(
        """\
model = T.T5ForConditionalGeneration(T.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4, decoder_start_token_id=0)).eval()
compiled = torch.compile(model)
for length in (8, 12):
    with torch.no_grad():
        compiled(input_ids=ids(2, length), labels=ids(2, 6))  # @call
""",
        breaks=0,
        recompilations=1,
    ),
    # A metric that leaves the graph in the middle, and a batch of another size.
    "vit": Model(
        """\
model = T.ViTModel(T.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=37, image_size=30, patch_size=2)).eval()

@torch.compile
def features(pixels):
    hidden = model(pixel_values=pixels).last_hidden_state
    norm = hidden.norm().item()  # @break
    return hidden / norm

with torch.no_grad():
    for batch in (2, 3):
        features(torch.randn(batch, 3, 30, 30))  # @call
""",
        breaks=1,
        recompilations=1,
    ),
}


@dataclass(frozen=True)
class Told:
    """What PyTorch itself said of the run."""

    counters: dict[str, dict[str, int]]
    breaks: list[tuple[str, int]]
    """File and line of each graph break that it logged (it logs each place once)."""
    break_events: int
    """How many graph breaks are in its trace."""
    reasons: dict[str, list[str]]
    """Compile → the guards that failed, newest first."""


@pytest.fixture(scope="module")
def ran_models() -> dict[str, tuple[Ran, Told, Path]]:
    return {}


@pytest.fixture(params=list(MODELS))
def model(
    request: pytest.FixtureRequest,
    ran_models: dict[str, tuple[Ran, Told, Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Ran, Told, Path]:
    name = request.param
    if name not in ran_models:
        folder = tmp_path_factory.mktemp(name)
        script = write(folder, START + MODELS[name].source + END)
        env = {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_TRACE": str(folder / "trace"), "HF_HUB_OFFLINE": "1"}
        ran = run_captured(script, folder / "runs.db", "deep", env=env)
        assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr[-3000:]
        ran_models[name] = (ran, told_by(ran, folder / "trace"), script)
    return (name, *ran_models[name])


def told_by(ran: Ran, trace: Path) -> Told:
    counters = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("COUNTERS "))[9:])
    reasons: dict[str, list[str]] = {}
    for compile, reason in re.findall(r"\[(\d+/\d+)\] \[__recompiles\]     - (.*)", ran.stderr):
        reasons.setdefault(compile, []).append(reason)
    (events,) = trace.iterdir()
    # An event without this header repeats another one.
    break_events = len(re.findall(r"^\tGraph break in user code at ", events.read_text(encoding="utf-8"), re.MULTILINE))
    breaks = re.findall(r"\[__graph_breaks\] Graph break in user code at (.+):(\d+)", ran.stderr)
    return Told(counters, [(file, int(line)) for file, line in breaks], break_events, reasons)


def test_the_capture_is_whole(model: tuple[str, Ran, Told, Path]) -> None:
    _, ran, _, _ = model
    assert ran.report.capture_gaps == ()
    assert {compile.outcome.value for compile in ran.report.compiles} <= {"compiled", "graph-break"}


def test_graph_breaks_agree(model: tuple[str, Ran, Told, Path]) -> None:
    """Each place that PyTorch logs is a finding's own or a related one, and each finding is one that PyTorch logs, as
    often as it is in PyTorch's trace.  PyTorch's counter passes over breaks at branches and counts others once for
    several frames, so it is a lower bound."""
    name, ran, told, script = model
    findings = ran.findings("graph-break")
    marked = lines_marked(script.read_text(), "@break")
    assert {(f.file, f.range.start.line) for f in findings} == {(str(script), line) for line in marked}
    assert len(findings) == MODELS[name].breaks
    for finding in findings:
        places = {(finding.file, finding.range.start.line), *((r.file, r.range.start.line) for r in finding.related)}
        assert places & set(told.breaks)
    assert len(set(told.breaks)) == len(findings)
    assert sum(finding.count for finding in findings) == told.break_events
    assert told.break_events >= sum(told.counters["graph_break"].values())
    codes = {finding.code.lower() for finding in findings}
    assert set(re.findall(r"/(gb\d+)\.html", " ".join(told.counters["graph_break"]))) <= codes
    assert set(re.findall(r"/(gb\d+)\.html", ran.stderr)) == codes


def test_recompilations_agree(model: tuple[str, Ran, Told, Path]) -> None:
    """The same compiles, for the same first reason, brought about by the calls."""
    name, ran, told, script = model
    findings = ran.findings("recompilation")
    assert sorted(id for finding in findings for id in finding.compiles) == sorted(told.reasons)
    assert len(told.reasons) >= MODELS[name].recompilations
    for finding in findings:
        firsts = {parse_failed_guard(told.reasons[id][0]).text for id in finding.compiles}
        assert any(f"The guard that failed: {text}" in finding.explanation for text in firsts)
        assert finding.file == str(script)
        calls = {r.range.start.line for r in finding.related if r.file == str(script)}
        assert calls & lines_marked(script.read_text(), "@call")


def test_graphs_agree(model: tuple[str, Ran, Told, Path]) -> None:
    _, ran, told, _ = model
    graphs = [compile for compile in ran.report.compiles if compile.graph_ops]
    assert len(graphs) == told.counters["stats"]["unique_graphs"]
    assert sum(compile.graph_ops for compile in graphs) == told.counters["stats"]["calls_captured"]


def test_every_kernel_has_an_origin(model: tuple[str, Ran, Told, Path]) -> None:
    """A user's line, or the library's where only the library was compiled; a constant fill has no source."""
    _, ran, _, script = model
    kernels: list[Any] = [kernel for kernel in ran.report.kernels if kernel.language != "extern"]
    assert len(kernels) > 2
    without = [kernel for kernel in kernels if not kernel.origins]
    for kernel in without:
        assert re.fullmatch(r"cpp_fused_\d+", kernel.name), kernel.name
        assert re.search(r"static_cast<\w+>\([\w.-]+\)", ran.text(kernel.stage))
    for kernel in kernels:
        for origin in kernel.origins:
            assert origin.file == str(script) or "/transformers/" in origin.file
            assert Path(origin.file).is_file()
    assert len(without) < len(kernels) / 4


def test_every_stage_is_there(model: tuple[str, Ran, Told, Path]) -> None:
    name, ran, _, _ = model
    for compile in ran.report.compiles:
        names = {stage.name for stage in compile.stages}
        if not compile.graph_ops:
            continue
        assert {
            "bytecode",
            "modified-bytecode",
            "dynamo-graph",
            "guards",
            "pre-grad-graph",
            "post-grad-graph",
            "output-code",
        } <= names
        if name == "gpt2":
            assert {"joint-graph", "forward-graph", "backward-graph"} <= names
        else:
            assert "inference-graph" in names
