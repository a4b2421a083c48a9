"""Sixteen architectures of `transformers`: the breaks and recompilations found are those of PyTorch's own trace.

Each script runs twice: under irscope, and as plain Python with ``TORCH_TRACE``, whose files are read here by a few
lines of their own.  The models are tiny and have random weights; each is called with two sizes, in eval mode and at
night in train mode, too.  At night some also go through the deep lane, where graphs, kernels and stages are compared
with what PyTorch's counters and logs say.
"""

from __future__ import annotations

import json
import os
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from irscope.ir.guard_text import parse_failed_guard
from irscope.protocol import Finding, OutcomeKind, Related, RelatedRole
from irscope.worker.client import Worker
from support import Ran, lines_marked, log_as, run_captured, run_plain_forked

transformers = pytest.importorskip("transformers")

FileLine = tuple[str, int]

START = """\
import torch
import transformers as T

torch.manual_seed(0)
TEXT = dict(vocab_size=99, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)


def ids(batch, length):
    return torch.randint(3, 99, (batch, length))


def in_both_modes(model, *calls):
    torch.manual_seed(0)
    compiled = torch.compile(model, backend="eager")
    for mode in (model.eval, model.train):
        mode()
        for inputs in calls:
            compiled(**inputs)

"""
RESET = "\ntorch._dynamo.reset()\n"  # else the limit of recompilations is reached by what the models share
MODELS = {
    "bert": """
in_both_modes(T.BertModel(T.BertConfig(**TEXT)), dict(input_ids=ids(2, 8)), dict(input_ids=ids(3, 6)))
""",
    "roberta": """
in_both_modes(T.RobertaModel(T.RobertaConfig(**TEXT)), dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "distilbert": """
distilbert = T.DistilBertModel(T.DistilBertConfig(vocab_size=99, dim=16, n_layers=1, n_heads=2, hidden_dim=16))
in_both_modes(distilbert, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "electra": """
electra = T.ElectraModel(T.ElectraConfig(**TEXT, embedding_size=8))
in_both_modes(electra, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "deberta": """
deberta = T.DebertaV2Model(T.DebertaV2Config(**TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"]))
in_both_modes(deberta, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "gpt2": """
gpt2 = T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2))
in_both_modes(gpt2, *(dict(input_ids=tokens, labels=tokens) for tokens in (ids(2, 8), ids(2, 6))))
""",
    "llama": """
llama = T.LlamaForCausalLM(T.LlamaConfig(**TEXT, num_key_value_heads=1))
in_both_modes(llama, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6), logits_to_keep=1))
""",
    "mistral": """
mistral = T.MistralModel(T.MistralConfig(**TEXT, num_key_value_heads=1, sliding_window=4))
in_both_modes(mistral, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "qwen2": """
qwen2 = T.Qwen2ForCausalLM(T.Qwen2Config(**TEXT, num_key_value_heads=1))


@torch.compile(backend="eager")
def score(tokens, mask):
    logits = qwen2(input_ids=tokens, attention_mask=mask).logits
    best = logits.amax().item()
    return torch.log_softmax(logits - best, -1)


for mode in (qwen2.eval, qwen2.train):
    mode()
    for length in (8, 6):
        score(ids(2, length), torch.ones(2, length, dtype=torch.long))
""",
    "mixtral": """
mixtral = T.MixtralModel(T.MixtralConfig(**TEXT, num_key_value_heads=1, num_local_experts=2))
in_both_modes(mixtral, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "mamba": """
mamba = T.MambaModel(T.MambaConfig(vocab_size=99, hidden_size=16, state_size=4, num_hidden_layers=1))
in_both_modes(mamba, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "t5": """
t5 = T.T5Model(T.T5Config(vocab_size=99, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2))
in_both_modes(t5, *(dict(input_ids=ids(2, n), decoder_input_ids=ids(2, 4)) for n in (8, 6)))
""",
    "bart": """
bart = T.BartModel(T.BartConfig(vocab_size=99, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, encoder_layerdrop=0.5))
in_both_modes(bart, dict(input_ids=ids(2, 8)), dict(input_ids=ids(2, 6)))
""",
    "vit": """
vit = T.ViTModel(T.ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4))
in_both_modes(vit, dict(pixel_values=torch.ones(2, 3, 8, 8)), dict(pixel_values=torch.ones(3, 3, 8, 8)))
""",
    "clip": """
part = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
clip = T.CLIPModel(T.CLIPConfig(text_config=dict(part, vocab_size=99, eos_token_id=2), vision_config=dict(part, image_size=8, patch_size=4), projection_dim=8))
in_both_modes(clip, *(dict(input_ids=ids(2, n), pixel_values=torch.ones(2, 3, 8, 8)) for n in (8, 6)))
""",
    "whisper": """
whisper = T.WhisperModel(T.WhisperConfig(vocab_size=99, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=8, max_source_positions=8, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2))
in_both_modes(whisper, *(dict(input_features=torch.ones(2, 8, 16), decoder_input_ids=ids(2, n)) for n in (4, 6)))
""",
}
MODELS["daily"] = MODELS["qwen2"].replace("(qwen2.eval, qwen2.train)", "(qwen2.eval,)")
DAILY = ("daily",)  # a language model with a break in the user's function
GROUPS = (
    ("qwen2",),  # the same, in both modes
    ("vit", "gpt2", "bert", "roberta", "distilbert", "electra", "deberta"),
    ("llama", "mistral", "mixtral", "mamba"),
    ("t5", "bart", "clip", "whisper"),
)


@dataclass(frozen=True)
class Told:
    """What the trace files of a run say: the breaks by place and id, and how often each compile was a recompilation."""

    breaks: set[tuple[str, int, str]]
    recompilations: Counter[str]


@pytest.mark.nightly  # more models; the fixes and the world have scripts of models
@pytest.mark.parametrize("names", [DAILY, *GROUPS], ids="-".join)
def test_models(names: tuple[str, ...], tmp_path: Path, shared_worker: Worker | None) -> None:
    script = tmp_path / "models.py"
    script.write_text(START + RESET.join(MODELS[name] for name in names), encoding="utf-8")
    plain = run_plain_forked(script, before=log_as({"TORCH_TRACE": str(tmp_path / "trace")}))
    assert plain.returncode == 0, plain.stderr[-3000:]
    told = told_by_files(tmp_path / "trace")

    ran = run_captured(script, tmp_path / "runs.db", "fast", worker=shared_worker)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr[-3000:]
    assert ran.report.capture_gaps == ()
    breaks = ran.findings("graph-break")
    assert {(*place, finding.code) for finding in breaks for place in blamed(finding)} == told.breaks
    assert all(finding.file == str(script) for finding in breaks)  # the user's line, wherever the cause lies
    recompilations = ran.findings("recompilation")
    again = Counter(compile.partition("#")[0] for finding in recompilations for compile in finding.compiles)
    assert again == told.recompilations
    assert sum(finding.count for finding in recompilations) == told.recompilations.total()
    assert told.recompilations, "these models are known to recompile"


def blamed(finding: Finding) -> list[FileLine]:
    """The library's lines that are at fault, if some are, else the user's."""
    at_fault = [place for place in finding.related if place.role is RelatedRole.CAUSE]
    places: Sequence[Related | Finding] = at_fault or [finding]
    return [(place.file, place.range.start.line) for place in places]


# --- the deep lane ----------------------------------------------------------------------------------------------------

# A training step, in which the library logs a warning while it is traced; a branch on a value, a Python number that
# changes, and a size.
DEEP = """
import json

gpt2 = T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2)).train()


@torch.compile
def step(tokens):
    loss = gpt2(input_ids=tokens, labels=tokens).loss  # @break
    return loss * 1.0


LANGUAGE


@torch.compile
def score(tokens, temperature):
    logits = logits_of(tokens)
    if logits.isnan().any():  # @break
        print("diverged")
    return torch.log_softmax(logits / temperature, -1).amax()


for length in (8, 12):
    step(ids(2, length)).backward()  # @call
with torch.no_grad():
    for length, temperature in ((8, 1), (8, 2), (12, 2)):
        score(ids(2, length), temperature)  # @call
counters = torch._dynamo.utils.counters
print("COUNTERS", json.dumps({name: dict(counters[name]) for name in ("graph_break", "stats")}))
"""


LANGUAGE = {
    "small": """\
logits_of = torch.nn.Sequential(torch.nn.Embedding(99, 16), torch.nn.Linear(16, 99)).eval()
""",
    "llama": """\
llama = T.LlamaForCausalLM(T.LlamaConfig(**TEXT, num_key_value_heads=1)).eval()


def logits_of(tokens):
    return llama(input_ids=tokens, use_cache=False).logits
""",
}


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.nightly) for name in LANGUAGE])
def deep(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("deep")
    script = folder / "models.py"
    script.write_text(START + DEEP.replace("LANGUAGE\n", LANGUAGE[request.param]), encoding="utf-8")
    env = {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_TRACE": str(folder / "trace"), "HF_HUB_OFFLINE": "1"}
    ran = run_captured(script, folder / "runs.db", "deep", env=env)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr[-3000:]
    assert ran.report.capture_gaps == ()
    return ran


def counters_of(ran: Ran) -> dict[str, dict[str, int]]:
    line = next(line for line in ran.stdout.splitlines() if line.startswith("COUNTERS "))
    return json.loads(line.removeprefix("COUNTERS "))  # type: ignore[no-any-return]


def test_deep_breaks(deep: Ran) -> None:
    """At the user's lines, as often as they are in PyTorch's trace.  PyTorch's counter passes over breaks at branches,
    so it is a lower bound."""
    findings = deep.findings("graph-break")
    assert {f.range.start.line for f in findings} == lines_marked(Path(deep.report.script).read_text(), "@break")
    (events,) = (Path(deep.report.script).parent / "trace").iterdir()
    # An event without this header repeats another one.
    told = len(re.findall(r"^\tGraph break in user code at ", events.read_text(encoding="utf-8"), re.MULTILINE))
    assert sum(finding.count for finding in findings) == told >= sum(counters_of(deep)["graph_break"].values())
    assert {finding.code.lower() for finding in findings} == set(re.findall(r"/(gb\d+)\.html", deep.stderr))


def test_deep_recompilations(deep: Ran) -> None:
    """The same compiles, for the same first reason, brought about by the calls."""
    reasons: dict[str, list[str]] = {}
    for compile, reason in re.findall(r"\[(\d+/\d+)\] \[__recompiles\]     - (.*)", deep.stderr):
        reasons.setdefault(compile, []).append(reason)
    findings = deep.findings("recompilation")
    assert sorted(id for finding in findings for id in finding.compiles) == sorted(reasons)
    assert len(reasons) >= 4
    for finding in findings:
        firsts = {parse_failed_guard(reasons[id][0]).text for id in finding.compiles}
        assert any(f"The guard that failed: {text}" in finding.explanation for text in firsts)
        assert finding.file == deep.report.script
        assert {r.range.start.line for r in finding.related} & lines_marked(
            Path(deep.report.script).read_text(), "@call"
        )


def test_deep_graphs(deep: Ran) -> None:
    graphs = [compile for compile in deep.report.compiles if compile.graph_ops]
    assert len(graphs) == counters_of(deep)["stats"]["unique_graphs"]
    assert sum(compile.graph_ops for compile in graphs) == counters_of(deep)["stats"]["calls_captured"]
    for compile in graphs:
        names = {stage.name for stage in compile.stages}
        assert {"bytecode", "modified-bytecode", "dynamo-graph", "guards", "post-grad-graph", "output-code"} <= names
        assert "inference-graph" in names or {"joint-graph", "forward-graph", "backward-graph"} <= names


def test_deep_kernels(deep: Ran) -> None:
    """Each has an origin, in the script or in the library; but for a constant fill, which has no source."""
    kernels = [kernel for kernel in deep.report.kernels if kernel.language != "extern"]
    without = [kernel for kernel in kernels if not kernel.origins]
    for kernel in without:
        assert re.fullmatch(r"cpp_fused_\d+", kernel.name), kernel.name
        assert re.search(r"static_cast<\w+>\([\w.-]+\)", deep.text(kernel.stage))
    for kernel in kernels:
        for origin in kernel.origins:
            assert origin.file == deep.report.script or "/transformers/" in origin.file
            assert Path(origin.file).is_file()
    assert len(kernels) > 4 and len(without) < len(kernels) / 4


# --- the trace files, read without irscope ----------------------------------------------------------------------------

_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in ', re.MULTILINE)
_ID = re.compile(r"/gb/(?P<id>gb\d+)\.html")
_NOT_AT_FAULT = (os.path.dirname(torch.__file__), sysconfig.get_paths()["stdlib"] + os.sep)


def told_by_files(folder: Path) -> Told:
    breaks: set[tuple[str, int, str]] = set()
    recompilations: Counter[str] = Counter()
    pending = ""  # the limit of recompilations stops some that were announced
    for file in folder.iterdir():
        for facts, payload in records_of(file.read_text(encoding="utf-8")):
            compile = f"{facts.get('frame_id')}/{facts.get('frame_compile_id')}"
            name = (facts.get("artifact") or {}).get("name")
            if name == "recompile_reasons":
                pending = compile
            elif "dynamo_start" in facts and pending == compile:
                recompilations[compile] += 1
                pending = ""
            elif name == "dynamo_graph_break_reason" and (found := _ID.search(payload)):
                breaks.add((*place_of(payload), found["id"].upper()))
    return Told(breaks, recompilations)


def records_of(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A line of facts each, behind a prefix of the logger; the lines of the payload begin with a tab."""
    facts: dict[str, Any] | None = None
    payload: list[str] = []
    for line in text.split("\n"):
        if line.startswith("\t"):
            payload.append(line[1:])
        elif (begin := line.find("] {")) > 0:
            if facts is not None:
                yield facts, "\n".join(payload)
            facts, payload = json.loads(line[begin + 2 :]), []
    if facts is not None:
        yield facts, "\n".join(payload)


def place_of(payload: str) -> FileLine:
    """The innermost line of the printed traceback that is neither torch's nor the standard library's."""
    _, _, stack = payload.partition("User code traceback:")
    frames = [(match["file"], int(match["line"])) for match in _FRAME.finditer(stack)]
    return next(place for place in reversed(frames) if not at_home_in_python(place[0]))


def at_home_in_python(file: str) -> bool:
    return file.startswith(_NOT_AT_FAULT) and not file.startswith(os.path.dirname(transformers.__file__))
