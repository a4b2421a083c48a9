"""How soon *Show Generated Kernel* shows the first kernel of a model that has never been compiled.

    python benchmarks/first_kernel.py [--rounds 5] [--layers 2] [--plain]

The script trains a small Llama of transformers (random weights) through a compiled function.  In each round the folder
of its kernels is empty, and the language server is asked for the kernels of the line that calls the model.  The time is from
that request to the text of the first kernel, with a worker that is ready; then the run is cancelled.

Divided by it is what has to happen before there is a text, by time stamps that the script takes itself:

- in the same run, from its first line (imports, the model) until Inductor has generated the code of the forward;
- with --plain also in plain Python, from the start of its process.  It goes first in every second round.

The first ratio does not depend on what else the machine does: both times are of one run.  It is the one with the goal.
Printed are the medians over the rounds; where the goal is missed the exit code is 1.
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

SCRIPT = """\
import time

def stamp(name):
    with open({stamps!r}, "a") as file:
        file.write(f"{{name}} {{time.time()}}\\n")

stamp("began")

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from torch._inductor.graph import GraphLowering

config = LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers={layers},
                     num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
model = LlamaForCausalLM(config).train()
load = GraphLowering._compile_to_module_lines

def stamped(self, code):
    stamp("generated")
    return load(self, code)

GraphLowering._compile_to_module_lines = stamped

@torch.compile
def step(tokens):
    return model(input_ids=tokens, labels=tokens).loss

stamp("called")
step(torch.randint(0, 256, (4, 32))).backward()
"""
LINE = SCRIPT.splitlines().index("    return model(input_ids=tokens, labels=tokens).loss")
GOAL = 1.15


@dataclass(frozen=True)
class Round:
    """Seconds.

    Args:
        shown: From the request to the text of the first kernel.
        imported, compiled: In the same run: to the call of the compiled function, and from there to generated code.
        plain: In plain Python, from the start of the process to generated code; 0: it was not run.
    """

    shown: float
    imported: float
    compiled: float
    plain: float

    @property
    def ratio(self) -> float:
        """Both times are of one run."""
        return self.shown / (self.imported + self.compiled)


class Script:
    """The script, with the time stamps that its newest run has taken, and the folder of its kernels."""

    def __init__(self, folder: Path, layers: int) -> None:
        self.path, self._stamps, self._kernels = folder / "script.py", folder / "stamps", folder / "kernels"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self._kernels)  # a script that sets it gets no worker
        self.text = SCRIPT.format(stamps=str(self._stamps), layers=layers)
        self.path.write_text(self.text)

    def begin(self) -> None:
        """Forget the time stamps and the kernels of the run before."""
        self._stamps.unlink(missing_ok=True)
        shutil.rmtree(self._kernels, ignore_errors=True)

    def stamps(self) -> dict[str, float]:
        """The first time stamp of each name: of two graphs, that of the forward."""
        lines = self._stamps.read_text().splitlines() if self._stamps.exists() else []
        return {name: float(when) for name, when in reversed([line.split() for line in lines])}


def plain(script: Script, python: str) -> float:
    """Seconds from the start of a plain run to generated code."""
    script.begin()
    begun = time.time()
    process = subprocess.Popen([python, str(script.path)], start_new_session=True)
    try:
        while "generated" not in (stamps := script.stamps()):
            if process.poll() is not None:
                raise RuntimeError(f"the script ended with {process.returncode}")
            time.sleep(0.02)
        return stamps["generated"] - begun
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def shown(script: Script, editor: Editor, uri: str) -> tuple[float, dict[str, float]]:
    """Seconds from the request to the text of the first kernel, and the time stamps of the run."""

    def answer_of(method: str, params: dict[str, Any]) -> Any:
        _, message = editor.answer(editor.request(method, params))
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    script.begin()
    asked, begun = time.perf_counter(), time.time()
    kernels = answer_of("irscope/kernelsAt", {"uri": uri, "line": LINE, "run": True})
    first = kernels["kernels"][0]
    text = answer_of("irscope/document", {"uri": first["uri"]})["text"]
    seconds = time.time() - begun
    if not kernels["running"] or "void" not in text:
        raise RuntimeError(f"the kernel came after the end of the run: {first['uri']}")
    stamps = script.stamps()
    answer_of("irscope/cancel", {"uri": uri})
    editor.wait_for(asked, lambda method, params: method == "irscope/runsChanged" and not params["running"])
    return seconds, stamps


def measure(rounds: int, layers: int, folder: Path, python: str, with_plain: bool) -> list[Round]:
    """The rounds, each with a text of its own, so that no run of an earlier one answers."""
    script = Script(folder, layers)
    editor = Editor([sys.executable, "-m", "irscope_server"])
    editor.initialize({"storePath": str(folder / "runs.db"), "python": python, "run": {"onSave": "off"}})
    uri, found = script.path.as_uri(), []
    document = {"uri": uri, "languageId": "python", "version": 1, "text": script.text}
    begun = time.perf_counter()
    editor.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    for state in ("starting", "ready"):  # before there is a worker, the state says "ready" as well
        wanted = ("irscope/worker", state)
        begun = editor.wait_for(begun, lambda method, params, it=wanted: (method, params.get("state")) == it)
    for number in range(rounds):
        text = f"{script.text}# round {number}\n"
        script.path.write_text(text)
        changed = {"textDocument": {"uri": uri, "version": number + 2}, "contentChanges": [{"text": text}]}
        editor.send({"method": "textDocument/didChange", "params": changed})
        without = plain(script, python) if with_plain and number % 2 == 0 else 0.0
        seconds, stamps = shown(script, editor, uri)
        if with_plain and not without:
            without = plain(script, python)
        imported, compiled = stamps["called"] - stamps["began"], stamps["generated"] - stamps["called"]
        found.append(Round(seconds, imported, compiled, without))
        print(f"{found[-1]}: {found[-1].ratio:.3f}", file=sys.stderr, flush=True)
    editor.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the script")
    parser.add_argument("--plain", action="store_true", help="also compare with plain Python, on a quiet machine")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rounds = measure(arguments.rounds, arguments.layers, Path(name), arguments.python, arguments.plain)
    figures = {
        "request to first kernel, s": statistics.median(one.shown for one in rounds),
        "imports and model, s": statistics.median(one.imported for one in rounds),
        "call to generated code, s": statistics.median(one.compiled for one in rounds),
        "ratio in one run": statistics.median(one.ratio for one in rounds),
    }
    if arguments.plain:
        figures["plain Python, s"] = statistics.median(one.plain for one in rounds)
        figures["ratio to plain Python"] = statistics.median(one.shown / one.plain for one in rounds)
    missed = figures["ratio in one run"] > GOAL
    if arguments.json:
        print(json.dumps({**figures, "processors": os.cpu_count()}))
        return int(missed)
    for name, value in figures.items():
        goal = f"  (goal {GOAL:g}: {'MISSED' if missed else 'kept'})" if name == "ratio in one run" else ""
        print(f"{name:28} {value:7.3f}{goal}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
