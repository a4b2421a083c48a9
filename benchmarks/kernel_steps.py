"""How fast the debugger steps through a program of a Triton kernel, and what a kernel of 10,000 programs costs in memory.

    python benchmarks/kernel_steps.py [--steps 500]

The kernels are those of two small programs for an H100: a softmax of rows with 4,096 elements, whose blocks have so many, and a
sum of 10,000 rows, one program each.  A *step* is what an editor waits for: the request, the stop, the call stack, the scopes and
the variables of the first of them.  The first step into the kernel runs it, and is shown on its own.  Memory is the largest
resident size of the process that runs the kernel, and, after it imported torch, numpy and triton, what came on top.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "protocol"))

import dap_client
from dap_client import Client
from kernel_bugs import kernels_of
from support import triton_importable

PROGRAM = """\
import torch


@torch.compile
def softmax(x):
    return torch.softmax(x, -1)


@torch.compile
def total(x):
    return x.sum(-1)


with torch.no_grad():
    softmax(torch.randn(8, 4096))
    total(torch.randn(10_000, 64))
"""
BOUNDS = {
    "step p99, ms": 10.0,
    "step back p99, ms": 10.0,
    "step, processor time p99, ms": 10.0,
    "step back, processor time p99, ms": 10.0,
    "memory of 10,000 programs, MB": 500.0,
}
_MEMORY = """\
import json, resource, sys
from irscope.values.kernel.running import run_kernels

request = json.load(open(sys.argv[1]))
(answer,) = run_kernels(sys.executable, [request], 900)
print(json.dumps([resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, answer.get("error") or answer["programs"]]))
"""


def main() -> int:
    """Prints the measures; 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, _triton():
        script, store = Path(folder, "small.py"), Path(folder, "runs.db")
        script.write_text(PROGRAM)
        command: list[str | Path] = [sys.executable, "-m", "irscope", "run", "--target", "h100", "--fake", "--no-machine-code", "--store", store, script]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        softmax, total = kernels_of(store)
        for name, steps in _steps(store, softmax.kernel.name, options.steps).items():
            steps.sort()
            measured[f"{name} p50, ms"] = statistics.median(steps) * 1000
            measured[f"{name} p99, ms"] = steps[min(int(len(steps) * 0.99), len(steps) - 1)] * 1000
        request = {**total.request(), "step": True, "elements": True}
        for name, blocks in (("of 10,000 programs", {"XBLOCK": 1}), ("of one program", {"XBLOCK": 16384})):
            asked = Path(folder, "request.json")
            asked.write_text(json.dumps({**request, "blocks": {**request.get("blocks", {}), **blocks}}))
            done = subprocess.run([sys.executable, "-c", _MEMORY, asked], check=True, capture_output=True, text=True)
            measured[f"memory {name}, MB"], programs = json.loads(done.stdout)
            print(f"{name}: {programs if isinstance(programs, str) else programs['run']} of {programs['of']} ran")
    missed = 0
    for name, value in measured.items():
        bound = BOUNDS.get(name)
        missed += bound is not None and value > bound
        print(f"{name:32} {value:9.2f}{f'   (at most {bound:g})' if bound is not None else ''}")
    return int(missed > 0)


@contextmanager
def _triton() -> Iterator[None]:
    dap_client.WAIT_SECONDS = 900.0
    with triton_importable():
        yield


def _steps(store: Path, kernel: str, count: int) -> dict[str, list[float]]:
    """Seconds of each step: into the kernel, on, and back."""
    taken: dict[str, list[float]] = {"step in": [], "step": [], "step back": []}
    with Client() as client:
        client.attach(str(store))
        source = next(each for each in client.ask("loadedSources")["sources"] if f"/{kernel}." in each["name"])
        compile = source["name"].partition(" ")[0]
        thread = next(each["id"] for each in client.ask("threads")["threads"] if each["name"].startswith(compile))
        target = client.ask("gotoTargets", source=source, line=1)["targets"][0]["id"]
        client.ask("goto", threadId=thread, targetId=target)
        client.event("stopped")
        begun = time.perf_counter()
        thread = client.move("stepIn", thread)["threadId"]  # the program's own
        taken["step in"].append(time.perf_counter() - begun)
        name, after = "step", "next"
        for _ in range(count):
            before = client.top(thread)["line"], client.top(thread)["name"]
            busy = _busy(client)
            taken[name].append(_timed(client, after, thread))
            taken.setdefault(f"{name}, processor time", []).append(_busy(client) - busy)
            if (client.top(thread)["line"], client.top(thread)["name"]) == before:  # the program ends or begins here
                name, after = ("step back", "stepBack") if name == "step" else ("step", "next")
        client.ask("disconnect")
    return taken


def _busy(client: Client) -> float:
    """Seconds of processor time that the adapter has taken; on a loaded machine the rest is waiting."""
    return int(Path(f"/proc/{client.process.pid}/schedstat").read_text().split()[0]) / 1e9


def _timed(client: Client, move: str, thread: int) -> float:
    begun = time.perf_counter()
    client.move(move, thread)
    client.stack(thread)
    scopes = client.scopes(thread)
    client.variables(next(iter(scopes.values()))["variablesReference"])
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
