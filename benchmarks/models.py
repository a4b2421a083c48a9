"""How soon a save shows what real models do, as ratios to doing it by hand and to what Dynamo takes alone.

    python benchmarks/models.py [--rounds 5] [--python INTERPRETER] [--tlparse PATH] [MODEL…]

The interpreter needs transformers, and for two of the six models timm; those that cannot be imported are left out, and
that is said.  Each model is tiny, with random weights.  The whole chain is timed: the language server gets `didSave`,
forks the layer that has the imports done, and publishes diagnostics.  Before each save the line with the graph break is
edited, so that what the save before has found is gone.

By hand, in the same round: ``TORCH_TRACE=dir python script.py && tlparse dir`` with the same eager backend (without
tlparse the script alone, which is said).  Dynamo alone: the same script in a process that has done its imports and
those of the compiler, from its first line to its end.  Ratios are taken within a round; printed are their medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latency import Editor

IDS = "torch.randint(3, 99, (2, 8))"
TEXT = "vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37"


@dataclass(frozen=True)
class Model:
    """A model: its imports, how it is made, how it is called."""

    imports: str
    make: str
    call: str

    def script(self, number: int) -> str:
        return f"""\
import torch
{self.imports}

torch.manual_seed(0)
model = {self.make}.eval()


@torch.compile(backend="eager")
def step(x):
    y = {self.call}
    print("round {number}")
    return y.sum() * 2


with torch.no_grad():
    step(x={IDS if "transformers" in self.imports and "ViT" not in self.imports else "torch.randn(1, 3, 64, 64)"})
"""


MODELS = {
    "bert": Model("from transformers import BertConfig, BertModel", f"BertModel(BertConfig({TEXT}))", "model(x)[0]"),
    "gpt2": Model(
        "from transformers import GPT2Config, GPT2LMHeadModel",
        "GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4))",
        "model(x)[0]",
    ),
    "llama": Model(
        "from transformers import LlamaConfig, LlamaForCausalLM",
        f"LlamaForCausalLM(LlamaConfig({TEXT}, num_key_value_heads=2))",
        "model(x)[0]",
    ),
    "vit": Model(
        "from transformers import ViTConfig, ViTModel",
        "ViTModel(ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, "
        "image_size=64))",
        "model(x)[0]",
    ),
    "timm-resnet18": Model("import timm", 'timm.create_model("resnet18")', "model(x)"),
    "timm-vit": Model(
        "import timm",
        'timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2)',
        "model(x)",
    ),
}
GOALS = {"first finding / by hand": 0.20, "last finding / by hand": 0.40, "last finding / Dynamo alone": 1.1}

ALONE = """\
import sys, time
exec(sys.argv[1])
import torch._dynamo.backends.debugging, torch._functorch.aot_autograd, torch._inductor.compile_fx
source = open(sys.argv[2]).read()
begun = time.perf_counter()
exec(compile(source, sys.argv[2], "exec"))
print(time.perf_counter() - begun, file=sys.stderr)
"""


def by_hand(python: str, script: Path, tlparse: str | None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        env = {**os.environ, "TORCH_TRACE": trace}
        begun = time.perf_counter()
        subprocess.run([python, str(script)], check=True, stdout=subprocess.DEVNULL, env=env)
        if tlparse:
            (log,) = Path(trace).iterdir()
            command = [tlparse, str(log), "-o", os.path.join(folder, "out"), "--no-browser"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begun


def dynamo_alone(python: str, script: Path, imports: str) -> float:
    command = [python, "-c", ALONE, imports, str(script)]
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return float(done.stderr.split()[-1])


def save(editor: Editor, uri: str, path: Path, text: str, version: int) -> tuple[float, float, float]:
    """Seconds from a save to the first diagnostic, to the last change of diagnostics, and to the end of the run."""

    def ended(method: str, params: dict[str, Any]) -> bool:
        return method == "irscope/runsChanged" and not params["running"]

    def shown(method: str, params: dict[str, Any]) -> bool:
        return method == "textDocument/publishDiagnostics" and bool(params["diagnostics"])

    path.write_text(text)
    changed = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
    editor.send({"method": "textDocument/didChange", "params": changed})
    time.sleep(0.5)
    begun = time.perf_counter()
    editor.send({"method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}})
    first = editor.wait_for(begun, shown)
    end = editor.wait_for(begun, ended)
    last, found = first, None
    for when, method, params in list(editor.notes):
        if begun < when <= end and shown(method, params):
            now = [(one["range"], one.get("code")) for one in params["diagnostics"]]
            last, found = (when, now) if now != found else (last, found)
    return first - begun, last - begun, end - begun


def measure(editor: Editor, name: str, arguments: Any, folder: Path) -> list[dict[str, float]]:
    model = MODELS[name]
    path = folder / f"{name.replace('-', '_')}.py"
    path.write_text(model.script(0))
    uri = path.as_uri()
    begun = time.perf_counter()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": model.script(0)}
    editor.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    editor.wait_for(begun, lambda method, params: method == "irscope/runsChanged" and not params["running"])
    time.sleep(arguments.pause)  # the layer is built when the first run has ended
    save(editor, uri, path, model.script(1), 2)
    rounds = []
    for number in range(2, arguments.rounds + 2):
        first, last, end = save(editor, uri, path, model.script(number), number + 1)
        hand = by_hand(arguments.python, path, arguments.tlparse)
        alone = dynamo_alone(arguments.python, path, model.imports)
        figures = {
            "by hand, s": hand,
            "Dynamo alone, s": alone,
            "first finding, s": first,
            "last finding, s": last,
            "end, s": end,
            "first finding / by hand": first / hand,
            "last finding / by hand": last / hand,
            "last finding / Dynamo alone": last / alone,
        }
        rounds.append(figures)
        print(name, {key: round(value, 3) for key, value in figures.items()}, file=sys.stderr)
    editor.send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
    return rounds


def idle(pid: int) -> dict[str, float]:
    """Memory of the server and of the worker with its layers, and the processor time of all of them in five seconds."""
    from irscope.system.processes import proportional_bytes, resident_bytes, tree

    def ticks() -> int:
        found = 0
        for one in tree(pid):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            found += int(fields[11]) + int(fields[12])
        return found

    time.sleep(2)
    before = ticks()
    time.sleep(5)
    busy = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    workers = tree(pid)[1:]
    return {
        "server, resident, MB": resident_bytes([pid]) / 1e6,
        "worker and layers, PSS together, MB": proportional_bytes(workers) / 1e6,
        "worker and layers, processes": len(workers),
        "processor time while idle, s of 5": busy,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pause", type=float, default=8.0, help="seconds for a layer to be built in")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the scripts")
    parser.add_argument("--tlparse", default=shutil.which("tlparse"))
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    if not arguments.tlparse:
        print("tlparse is missing: by hand is the script alone.", file=sys.stderr)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        editor = Editor([sys.executable, "-m", "irscope_server"])
        editor.initialize({"storePath": os.path.join(name, "runs.db"), "python": arguments.python})
        for model in arguments.models:
            command = [arguments.python, "-c", MODELS[model].imports]
            if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:
                print(f"{model} is left out: its package cannot be imported.", file=sys.stderr)
                continue
            rounds = measure(editor, model, arguments, Path(name))
            found[model] = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        at_rest = idle(editor.process.pid)
        editor.close()
    missed = [
        f"{model}: {what}" for model, figures in found.items() for what, goal in GOALS.items() if figures[what] > goal
    ]
    if arguments.json:
        print(json.dumps({"models": found, "idle": at_rest, "missed": missed, "load": os.getloadavg()}))
        return int(bool(missed))
    for model, figures in found.items():
        print(model)
        for what, value in figures.items():
            goal = f"  (goal {GOALS[what]:g}: {'MISSED' if value > GOALS[what] else 'kept'})" if what in GOALS else ""
            print(f"  {what:30} {value:7.3f}{goal}")
    for what, value in at_rest.items():
        print(f"{what:38} {value:8.1f}")
    print("load averages", *os.getloadavg())
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
