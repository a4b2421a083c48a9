"""How many of the Triton kernels that are predicted for an H100 run without one, and agree with eager mode.

    python benchmarks/kernel_rate.py --held FOLDER --python PYTHON --keep kernel_rate.json

The kernels are those of twelve real models with tiny widths and random weights (transformers, timm, diffusers), and of the
scripts in FOLDER.  PYTHON has torch, triton and these libraries.  A store for each script is kept in ``--stores``, so that
a second call continues.  A kernel agrees if what it wrote differs from eager mode by no more than its dtype explains, and no
check found anything.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from deep_models import SCRIPTS
from irscope.values.kernel.running import run_kernels
from kernel_bugs import kernels_of, verdict

_ANSWER = """\
import torch
{imports}

torch.manual_seed(0)
model = torch.compile({make}.eval(){to})
with torch.no_grad():
    model({inputs})
"""
_HALF = ".to(torch.bfloat16)"
_LATENT = "torch.randn(2, 4, 16, 16, dtype=torch.bfloat16), torch.tensor([3, 5]), torch.tensor([1, 2])"
_QWEN = """\
import torch
import transformers as T

torch.manual_seed(0)
sizes = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)
model = torch.compile(T.Qwen3ForCausalLM(T.Qwen3Config(**sizes, num_key_value_heads=2, head_dim=8)).eval().to(torch.bfloat16))
with torch.no_grad():
    model(input_ids=torch.randint(3, 99, (2, 8)))
"""
MODELS = {
    **{name: script for name, script in SCRIPTS.items() if name != "t5-training"},
    "qwen3": _QWEN,
    "timm-convnext": _ANSWER.format(
        imports="import timm", make="timm.models.convnext.ConvNeXt(depths=(1, 1, 1, 1), dims=(16, 32, 48, 64), num_classes=10)",
        to=_HALF, inputs="torch.randn(2, 3, 64, 64, dtype=torch.bfloat16)",
    ),
    "timm-swin": _ANSWER.format(
        imports="import timm", make="timm.models.swin_transformer.SwinTransformer(img_size=64, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4, num_classes=10)",
        to="", inputs="torch.randn(2, 3, 64, 64)",
    ),
    "timm-mobilenet": _ANSWER.format(
        imports="import timm", make="timm.create_model('mobilenetv3_small_050', num_classes=10)", to="",
        result="", inputs="torch.randn(4, 3, 64, 64)",
    ),
    "diffusers-unet": _ANSWER.format(
        imports="from diffusers import UNet2DModel",
        make="UNet2DModel(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8, "
        "down_block_types=('DownBlock2D', 'AttnDownBlock2D'), up_block_types=('AttnUpBlock2D', 'UpBlock2D'))",
        to="", inputs="torch.randn(2, 3, 16, 16), torch.tensor([3, 5])",
    ),
    "diffusers-autoencoder": _ANSWER.format(
        imports="from diffusers import AutoencoderKL",
        make="AutoencoderKL(block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8, sample_size=32, latent_channels=4, "
        "down_block_types=('DownEncoderBlock2D',) * 2, up_block_types=('UpDecoderBlock2D',) * 2)",
        to="", inputs="torch.randn(1, 3, 32, 32)",
    ),
    "diffusers-dit": _ANSWER.format(
        imports="from diffusers import DiTTransformer2DModel",
        make="DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=8, num_layers=2, sample_size=16, num_embeds_ada_norm=1000)",
        to=_HALF, inputs=_LATENT,
    ),
}  # fmt: skip
"""Twelve models: six of transformers, three of timm, three of diffusers; two are trained, three compute in bfloat16."""
_CASES = """\
import sys

sys.path.insert(0, {folder!r})
import torch
from small_cases import CASES

make, arguments, is_trained = CASES[{case!r}]("cpu")
torch.manual_seed(0)
arguments = [torch.randn(each.shape).to(each.dtype).requires_grad_(is_trained) if each.is_floating_point() else each for each in arguments]
result = torch.compile(make)(*arguments)
if is_trained:
    result.sum().backward()
"""
BUDGET = 400
"""Seconds for the run of one script."""


def main() -> int:
    """Prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", type=Path, help="a folder with scripts, searched with its subfolders")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch, triton and the libraries")
    parser.add_argument("--stores", type=Path, help="folder for a store of each script (default: a temporary one)")
    parser.add_argument("--only", default="", help="names that begin with this alone")
    parser.add_argument("--seconds", type=float, default=10.0, help="for the programs of one kernel")
    parser.add_argument("--together", type=int, default=2, help="scripts at one time")
    parser.add_argument("--keep", type=Path, help="file for the result")
    options = parser.parse_args()
    folder = options.stores or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    scripts = {name: text for name, text in {**MODELS, **held(options.held)}.items() if name.startswith(options.only)}
    began = time.monotonic()
    with ThreadPoolExecutor(options.together) as pool:
        rows = list(
            pool.map(lambda item: measured(item[0], item[1], folder, options.python, options.seconds), scripts.items())
        )
    found = summary([row for row in rows if row["kernels"]], [row["script"] for row in rows if not row["kernels"]])
    found["seconds"] = round(time.monotonic() - began)
    text = json.dumps(found, indent=1)
    print(text)
    if options.keep:
        options.keep.write_text(text + "\n", encoding="utf-8")
    return 0


def held(folder: Path | None) -> dict[str, Any]:
    """The scripts of a folder by their name: a text, or a path."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.py")) if folder else ():
        text = path.read_text(encoding="utf-8")
        if "CASES={}" in text:
            names = [row.partition("(")[0].removeprefix("def ") for row in text.split("\n") if row.startswith("def ") and not row.startswith("def case(")]  # fmt: skip
            found.update({f"{path.stem}-{name}": _CASES.format(folder=str(path.parent), case=name) for name in names})
        elif "torch" in text and path.name != "__init__.py" and "_lib" not in path.parent.name:
            found[path.stem] = path
    return found


def measured(name: str, script: Any, folder: Path, python: str, seconds: float) -> dict[str, Any]:
    """Captures a script for an H100, unless it was, and runs its kernels."""
    store = folder / f"{name}.db"
    if not store.exists():
        if not isinstance(script, Path):
            script, text = folder / f"{name}.py", script
            script.write_text(text, encoding="utf-8")
        # Without storage the CPU's kernels are not compiled; a backward needs them.
        fake = [] if "backward" in Path(script).read_text(encoding="utf-8") else ["--fake"]
        command: list[str | Path] = [
            sys.executable, "-m", "irscope", "run", "--target", "h100", "--no-machine-code", *fake, "--budget", str(BUDGET),
            "--python", python, "--store", store, script,
        ]  # fmt: skip
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=script.parent, env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    answered = folder / f"{name}.json"
    if not answered.exists():
        answered.write_text(json.dumps(answers(store, python, seconds)), encoding="utf-8")
    rows = json.loads(answered.read_text(encoding="utf-8"))
    print(f"{name}: {len(rows)} kernels, {sum(row['verdict'] == 'agree' for row in rows)} agree", file=sys.stderr, flush=True)  # fmt: skip
    return {"script": name, "kernels": rows}


def answers(path: Path, python: str, seconds: float) -> list[dict[str, Any]]:
    """What became of each predicted Triton kernel of a store."""
    rows: list[dict[str, Any]] = []
    requests, asked = [], []
    try:
        kernels = kernels_of(path)
    except LookupError:
        return []
    for kernel in kernels:
        try:
            requests.append({**kernel.request(), "seconds": seconds})
            asked.append(kernel)
        except LookupError as error:
            rows.append({"kernel": kernel.stage, "verdict": "did not run", "why": str(error), "findings": []})
    for kernel, answer in zip(asked, run_kernels(python, requests, 7200) if requests else (), strict=True):
        what, why = verdict(answer)
        findings = [f"{each['kind']} at line {each['line']}" for each in answer.get("problems", ())]
        rows.append({"kernel": kernel.stage, "verdict": what, "why": why, "findings": findings})
    return rows


def summary(rows: list[dict[str, Any]], without: list[str]) -> dict[str, Any]:
    """The rate, what each script gave, and each kernel that does not agree."""
    counts = Counter(kernel["verdict"] for row in rows for kernel in row["kernels"])
    of_all = counts.total()
    others = {
        f"{row['script']} {kernel['kernel']}": "; ".join(filter(None, [*([f"{kernel['verdict']}: {kernel['why']}"] if kernel["verdict"] != "agree" else []), *kernel["findings"]]))
        for row in rows for kernel in row["kernels"] if kernel["verdict"] != "agree" or kernel["findings"]
    }  # fmt: skip
    return {
        "kernels": of_all, "agree": counts["agree"], "share": round(counts["agree"] / of_all, 4) if of_all else None,
        "findings": sum(len(kernel["findings"]) for row in rows for kernel in row["kernels"]),
        "scripts": {row["script"]: [len(row["kernels"]), sum(kernel["verdict"] == "agree" for kernel in row["kernels"])] for row in rows},
        "without kernels": without, "others": others,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
