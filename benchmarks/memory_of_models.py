"""The peak of a training step on a GPU: predicted without it, and measured.

    python benchmarks/memory_of_models.py [--most N] [--jobs N] [--json FILE]

For each of ten models, made from a configuration with random weights, two processes: one runs the step as a plain script
and asks the allocator, one runs ``irscope run --target h100 --fake`` with the GPU hidden and reads the stages
``memory-fit``.  Needs a GPU, transformers and timm.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from irscope.store.store import Store

STEP = """
import torch
{make}
torch.manual_seed(0)
model = make().to("cuda")
model.train()
compiled = torch.compile(model)
optimizer = torch.optim.{optimizer}(model.parameters(), lr=1e-4)

def step(data):
    optimizer.zero_grad()
    loss = loss_of(compiled, data)
    loss.backward()
    optimizer.step()

data = batch()
for _ in range(4):
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    step(data)
print("PEAK", torch.cuda.max_memory_allocated())
"""
CAUSAL = """
import transformers
def make():
    return transformers.AutoModelForCausalLM.from_config(transformers.{config}({given}), attn_implementation="sdpa").to({dtype})
def batch():
    return torch.randint(0, 1000, ({rows}, {length})).to("cuda")
def loss_of(model, ids):
    return model(input_ids=ids, labels=ids, use_cache=False).loss
"""
ENCODER = """
import transformers
def make():
    return transformers.{model}(transformers.{config}({given}))
def batch():
    return torch.randint(0, 1000, ({rows}, {length})).to("cuda")
def loss_of(model, ids):
    return model(input_ids=ids)[0].float().pow(2).mean()
"""
VISION = """
import timm
def make():
    return timm.create_model("{name}").to({dtype})
def batch():
    return torch.randn({rows}, 3, 224, 224, dtype={dtype}).to("cuda")
def loss_of(model, images):
    return model(images).float().logsumexp(-1).mean()
"""
OWN = """
def make():
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, norm_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 6)
def batch():
    return torch.randn(16, 512, 768).to("cuda")
def loss_of(model, x):
    return model(x).pow(2).mean()
"""
_LLAMA = "hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4, vocab_size=32000"
MODELS: dict[str, tuple[str, str]] = {
    "llama, bfloat16": (CAUSAL.format(config="LlamaConfig", given=_LLAMA, dtype="torch.bfloat16", rows=2, length=2048), "AdamW"),
    "qwen2, float32": (CAUSAL.format(config="Qwen2Config", given=_LLAMA, dtype="torch.float32", rows=2, length=1024), "AdamW"),
    "gpt2": (CAUSAL.format(config="GPT2Config", given="n_layer=6", dtype="torch.float32", rows=8, length=512), "AdamW"),
    "phi3, bfloat16": (CAUSAL.format(config="Phi3Config", given=_LLAMA + ", pad_token_id=0", dtype="torch.bfloat16", rows=2, length=2048), "SGD"),
    "bert": (ENCODER.format(model="BertModel", config="BertConfig", given="num_hidden_layers=6", rows=16, length=256), "AdamW"),
    "resnet50": (VISION.format(name="resnet50", dtype="torch.float32", rows=64), "SGD"),
    "vit_base": (VISION.format(name="vit_base_patch16_224", dtype="torch.float32", rows=32), "AdamW"),
    "convnext_tiny, bfloat16": (VISION.format(name="convnext_tiny", dtype="torch.bfloat16", rows=64), "AdamW"),
    "mobilenetv3_large": (VISION.format(name="mobilenetv3_large_100", dtype="torch.float32", rows=128), "Adam"),
    "torch.nn encoder": (OWN, "AdamW"),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=len(MODELS))
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = [*pool.map(_row, [*MODELS][: given.most])]
    for row in rows:
        name = row["model"]
        print(f"{name:28}{_mb(row['measured'])}{_mb(row['predicted'])}{_percent(row)}  {row['parts']}", flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))
    return 0


def _row(name: str) -> dict[str, object]:
    make, optimizer = MODELS[name]
    with tempfile.TemporaryDirectory() as kept:
        return _measured(name, Path(kept), make, optimizer)


def _measured(name: str, folder: Path, make: str, optimizer: str) -> dict[str, object]:
    script = folder / "train.py"
    script.write_text(STEP.format(make=make, optimizer=optimizer))
    plain = _run([sys.executable, str(script)], {})
    store = ["--store", str(folder / "runs.db")]
    irscope = [sys.executable, "-m", "irscope"]
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    _run([*irscope, "run", str(script), "--fake", "--target", "h100", *store], hidden)
    parts = _fits(folder / "runs.db")
    measured = re.search(r"^PEAK (\d+)", plain, re.MULTILINE)
    return {
        "model": name,
        "measured": int(measured[1]) if measured else None,
        "predicted": max((part["total"] for part in parts), default=None),
        "parts": parts,
    }


def _fits(store: Path) -> list[dict[str, int]]:
    """The data of all stages ``memory-fit`` of a store's run."""
    with Store(str(store)) as opened:
        run = opened.runs()[0].run
        ids = [stage.id for compile in opened.report(run).predictions for stage in compile.stages]
        return [opened.stage_data(run, name) for name in ids if name.endswith("/memory-fit")]


def _run(command: list[str], env: dict[str, str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, timeout=900)
    if ran.returncode:
        print(" ".join(command[1:6]), ran.returncode, (ran.stdout + ran.stderr)[-1500:], file=sys.stderr)
    return ran.stdout


def _mb(size: object) -> str:
    return f"{size / 1e6:10.1f} MB" if isinstance(size, int) else f"{'?':>13}"


def _percent(row: dict[str, object]) -> str:
    measured, predicted = row["measured"], row["predicted"]
    if not isinstance(measured, int) or not isinstance(predicted, int):
        return "       ?"
    return f"{100 * (predicted - measured) / measured:+8.1f} %"


if __name__ == "__main__":
    sys.exit(main())
