"""How many kernels that are predicted for a GPU are those that the GPU gets.

    python benchmarks/targets.py real --out real.json [--jobs 6] [--only WORD]          on the machine with the GPU
    python benchmarks/targets.py compare --real real.json --target h100 --out result.json    anywhere, with the same versions

Each case is a model with random weights, for inference or one training step, in float32 or bfloat16.  ``real`` runs its
script under ``irscope run`` on the GPU and keeps Triton's kernels; ``compare`` runs it with CPU tensors and ``--target``.
A kernel counts as predicted if its source is the same to the byte, but for the hash of PyTorch and Triton themselves.
The PTX of such a kernel is compared, without the version of PTX (the assembler's) and places in files, where the GPU
used the configuration that was compiled.  For ``compare`` the CPU's own code is not compiled, which saves time and
changes nothing for the target.  Where the folder of ``--work`` has the store of the real run, predictions take what the
GPU has chosen by timing.  Prints a table and writes all that differ to ``--out``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "compiler"))

from irscope.comparing.certificates import comparable_code, comparable_source  # noqa: E402
from irscope.store.store import Store  # noqa: E402

TINY = "vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256"
IDS = "torch.randint(3, 99, (4, 64), device=device)"
IMAGE = "torch.randn(4, 3, 64, 64, device=device, dtype=dtype)"
LARGE_IMAGE = "torch.randn(2, 3, 224, 224, device=device, dtype=dtype)"
FEW_HEADS = "num_key_value_heads=2, max_position_embeddings=128"

MODELS: dict[str, tuple[str, str]] = {
    name: (f"AutoModel.from_config({config}({options}))", inputs)
    for name, config, options, inputs in (
        ("bert", "BertConfig", TINY, IDS),
        ("roberta", "RobertaConfig", TINY, IDS),
        ("electra", "ElectraConfig", TINY, IDS),
        ("albert", "AlbertConfig", f"{TINY}, embedding_size=64", IDS),
        ("distilbert", "DistilBertConfig", "vocab_size=1000, dim=128, n_layers=2, n_heads=4, hidden_dim=256", IDS),
        ("gpt2", "GPT2Config", "vocab_size=1000, n_embd=128, n_layer=2, n_head=4, use_cache=False", IDS),
        ("gpt-neox", "GPTNeoXConfig", f"{TINY}, use_cache=False", IDS),
        ("opt", "OPTConfig", "vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, ffn_dim=256,"
         " word_embed_proj_dim=128, use_cache=False", IDS),
        ("llama", "LlamaConfig", f"{TINY}, {FEW_HEADS}, use_cache=False", IDS),
        ("mistral", "MistralConfig", f"{TINY}, {FEW_HEADS}, use_cache=False", IDS),
        ("qwen2", "Qwen2Config", f"{TINY}, {FEW_HEADS}, use_cache=False", IDS),
        ("qwen3", "Qwen3Config", f"{TINY}, {FEW_HEADS}, head_dim=32, use_cache=False", IDS),
        ("gemma", "GemmaConfig", f"{TINY}, {FEW_HEADS}, head_dim=32, use_cache=False", IDS),
        ("phi", "PhiConfig", f"{TINY}, {FEW_HEADS}, use_cache=False", IDS),
        ("vit", "ViTConfig", "hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,"
         " image_size=64, patch_size=16", IMAGE),
        ("resnet-hf", "ResNetConfig", "embedding_size=32, hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1]", IMAGE),
        ("convnext-hf", "ConvNextConfig", "hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1]", IMAGE),
        ("segformer", "SegformerConfig", "hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1]", IMAGE),
    )
} | {
    name: (f"timm.create_model({name.removeprefix('timm-')!r}, num_classes=100{more})", LARGE_IMAGE)
    for name, more in (
        ("timm-resnet18", ""), ("timm-mobilenetv3_small_050", ""), ("timm-efficientnet_b0", ""),
        ("timm-convnext_atto", ""), ("timm-vit_tiny_patch16_224", ""), ("timm-mixer_s32_224", ""),
        ("timm-regnetx_002", ""), ("timm-swin_tiny_patch4_window7_224", ", embed_dim=48, depths=(1, 1, 1, 1)"),
    )
}  # fmt: skip

SCRIPT = """\
import os
import sys

import torch

device, dtype, train = sys.argv[1], getattr(torch, {dtype!r}), {train}
if device == "cpu":  # the code of the CPU itself is not wanted; a child of irscope's compiles as ever
    import torch._inductor.compile_fx

    here, common = os.getpid(), torch._dynamo.backends.common
    aot_autograd = common.aot_autograd

    def only_in_children(**options):
        return (lambda program, inputs: program) if os.getpid() == here else aot_autograd(**options)

    common.aot_autograd = only_in_children
    for module in (torch._inductor.compile_fx, getattr(torch._inductor.compile_fx, "dynamo_common", common)):
        if hasattr(module, "aot_autograd"):
            module.aot_autograd = only_in_children

{imports}
torch.manual_seed(0)
model = {make}.to(device, dtype).train(train)
inputs = {inputs}


@torch.compile
def step(x):
    found = model(x)
    found = found if isinstance(found, torch.Tensor) else found[0]
    return found.float().square().mean()


with torch.set_grad_enabled(train):
    loss = step(inputs)
    if train:
        loss.backward()
print("done")
"""


def cases() -> dict[str, tuple[str, str, bool]]:
    """By name: the model, the dtype, whether it is trained."""
    found = {}
    for train in (True, False):
        for number, model in enumerate(MODELS):
            dtype = "bfloat16" if (number % 2 == 1) != train else "float32"
            found[f"{model}-{'train' if train else 'infer'}-{dtype}"] = (model, dtype, train)
    return found


def write_script(case: str, folder: Path) -> Path:
    """The script of a case."""
    model, dtype, train = cases()[case]
    make, inputs = MODELS[model]
    is_timm = model.startswith("timm-")
    imports = "import timm" if is_timm else f"from transformers import AutoModel, {make.split('(')[1]}"
    path = folder / f"{case}.py"
    path.write_text(SCRIPT.format(dtype=dtype, train=train, imports=imports, make=make, inputs=inputs))
    return path


def run(case: str, folder: Path, target: str, seconds: float) -> dict[str, Any]:
    """Runs a case, on the GPU if no target is named; its kernels, or the error."""
    script, kind = write_script(case, folder), target or "real"
    environment = {
        **os.environ, "PYTHONPATH": str(REPOSITORY / "compiler"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / f"cache-{kind}-{case}"), "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }  # fmt: skip
    store = folder / f"{kind}-{case}.db"
    command = [sys.executable, "-m", "irscope", "run", str(script), "--store", str(store), "--json"]
    tuned = folder / f"real-{case}.db"
    command += ["--target", target, *(["--tuned", str(tuned)] if tuned.exists() else [])] if target else []
    command += ["--", "cpu" if target else "cuda"]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
        report = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        return {"case": case, "error": f"{type(error).__name__} {str(error)[-300:]}"}
    if report["outcome"]["kind"] != "completed" or "done" not in done.stderr:
        return {"case": case, "error": f"{json.dumps(report['outcome'])[:200]} {done.stderr[-600:]}"}
    return {
        "case": case, "seconds": round(time.monotonic() - started, 1), "kernels": read(store, report, target),
        "gaps": [f"{gap['what']}: {gap['why']}"[:300] for gap in report["capture_gaps"]],
        "compile_seconds": sum(each["seconds"] for each in report["predictions" if target else "compiles"]),
    }  # fmt: skip


def read(store: Path, report: dict[str, Any], target: str) -> list[dict[str, Any]]:
    """The Triton kernels of the newest run: compile, name, source, configuration and PTX."""
    found, run_id = [], report["run"]
    with Store(str(store)) as opened:
        whole = opened.report(run_id)
        for kernel in whole.predicted_kernels if target else whole.kernels:
            if kernel.language != "triton" or not kernel.is_generated:
                continue
            row = {"compile": kernel.compile.removesuffix(f"/{target}"), "name": kernel.name,
                   "source": opened.stage_text(run_id, kernel.stage)}  # fmt: skip
            try:
                row["ptx"] = opened.stage_text(run_id, f"{kernel.stage}/ptx")
                row["config"] = opened.stage_data(run_id, f"{kernel.stage}/binary")["config"]
            except LookupError:
                pass
            found.append(row)
    return found


def compared(real: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """How many kernels of the GPU were predicted, and those that were not."""
    wanted = Counter(comparable_source(row["source"]) for row in real["kernels"])
    have = Counter(comparable_source(row["source"]) for row in made["kernels"])
    by_source = {comparable_source(row["source"]): row for row in made["kernels"]}
    pairs = [(row, by_source.get(comparable_source(row["source"]), {})) for row in real["kernels"]]
    ptx = [(a["ptx"], b["ptx"]) for a, b in pairs if "ptx" in a and "ptx" in b and a["config"] == b["config"]]
    different = [pair for pair in ptx if comparable_code(pair[0]) != comparable_code(pair[1])]
    return {
        "kernels": len(real["kernels"]), "same": sum((wanted & have).values()), "predicted": len(made["kernels"]),
        "ptx": len(ptx), "ptx_same": len(ptx) - len(different), "ptx_different": different[:2],
        "only_real": [_without_ptx(row) for row in real["kernels"] if comparable_source(row["source"]) not in have],
        "only_predicted": [_without_ptx(row) for row in made["kernels"] if comparable_source(row["source"]) not in wanted],
    }  # fmt: skip


def _without_ptx(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "ptx"}


def main() -> int:
    """Runs the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("real", "compare"))
    parser.add_argument("--target", default="h100")
    parser.add_argument("--real", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("out/targets"))
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=240, help="of one run of one case")
    parser.add_argument("--in-all", type=float, default=1e9, help="seconds after which no further case is begun")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    is_real, until = options.what == "real", time.monotonic() + options.in_all
    known = {} if is_real else {each["case"]: each for each in json.loads(options.real.read_text())}
    wanted = [case for case in cases() if options.only in case and (is_real or "kernels" in known.get(case, ()))]
    results: list[dict[str, Any]] = []

    def one(case: str) -> dict[str, Any]:
        if time.monotonic() > until:
            return {"case": case, "error": "not begun: out of time"}
        return run(case, options.work, "" if is_real else options.target, options.seconds)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(one, case) for case in wanted]):
            result = future.result()
            if not is_real and "error" not in result:
                result |= compared(known[result["case"]], result)
            results.append(result)
            shown = result.get("error") or (f"{result['seconds']} s, {len(result['kernels'])} kernels" if is_real else
                f"{result['same']} of {result['kernels']}, PTX {result['ptx_same']} of {result['ptx']}, {result['gaps'] or ''}")  # fmt: skip
            print(f"{result['case']:55} {shown}", flush=True)
            options.out.write_text(json.dumps(results, indent=1))
    if not is_real:
        _sum_up([result for result in results if "error" not in result])
    return 0


def _sum_up(done: list[dict[str, Any]]) -> None:
    same, kernels = sum(result["same"] for result in done), sum(result["kernels"] for result in done)
    exact = sum(result["same"] == result["kernels"] == result["predicted"] for result in done)
    print(f"{len(done)} cases, {exact} without any difference: {same} of {kernels} kernels are the same",
          f"({same / max(kernels, 1):.2%}); PTX {sum(r['ptx_same'] for r in done)} of {sum(r['ptx'] for r in done)}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
