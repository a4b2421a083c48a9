"""Who waits for whom: a planted sleep on one rank, and what irscope says of it.

    .venv/bin/python benchmarks/waits.py [--ranks 4] [--backend gloo] [--steps 20] [--rounds 3] [--sleeps MS …]
        [--width 256] [--layers 2]

Rank `--late` sleeps 5, 20 and 50 ms in each step, at a line of its own.  Printed is a row of the table in docs/ranks.md for
each sleep: the median of the steps that irscope names, its error, the rank and the line, and what capturing costs: the
median time of a step under `irscope run` with no sleep, over that without irscope, in rounds that take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

IRSCOPE = [sys.executable, "-m", "irscope"]
SLEEPS = (5.0, 20.0, 50.0)
SCRIPT = """\
import os, sys, time
import torch
import torch.distributed as dist
import torch.nn as nn

backend, milliseconds, late, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
width, layers = int(sys.argv[5]), int(sys.argv[6])
dist.init_process_group(backend)
rank = dist.get_rank()
device = "cpu"
if backend == "nccl":
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)
torch.manual_seed(0)
net = nn.Sequential(*(one for _ in range(layers) for one in (nn.Linear(width, width), nn.ReLU()))).to(device)
step = torch.compile(lambda x: net(x).square().mean(), backend="eager")
x, spent = torch.randn(width // 8, width, device=device), []


def wait_a_little():
    time.sleep(milliseconds / 1e3)  # sleep


for number in range(steps + 5):
    begun = time.perf_counter()
    step(x).backward()
    if backend == "nccl":
        torch.cuda.synchronize()  # else the sleep is beside what the device still computes, and the others wait less
    if rank == late and milliseconds and number >= 5:
        wait_a_little()
    flat = torch.cat([one.grad.flatten() for one in net.parameters()])
    dist.all_reduce(flat)  # reduce
    if backend == "nccl":
        torch.cuda.synchronize()
    if number >= 5:
        spent.append(time.perf_counter() - begun)
if rank == 0:
    print("STEP", sorted(spent)[len(spent) // 2])
time.sleep(0.5)
"""


def line_of(mark: str) -> int:
    return next(at for at, line in enumerate(SCRIPT.split("\n"), 1) if line.endswith(f"# {mark}"))


def seconds_of_step(text: str) -> float:
    return next(float(line.split()[-1]) for line in text.split("\n") if "STEP" in line)


class Job(NamedTuple):
    """A job of ranks that each make steps, and in which one sleeps."""

    ranks: int = 4
    backend: str = "gloo"
    steps: int = 20
    width: int = 256
    layers: int = 2
    late: int = -1

    def command(self, milliseconds: float, script: Path, irscope: bool) -> list[str]:
        """How it is started, under irscope or by torchrun."""
        given = [
            self.backend,
            str(milliseconds),
            str(self.late % self.ranks),
            str(self.steps),
            str(self.width),
            str(self.layers),
        ]
        number = ["--nproc-per-node", str(self.ranks)]
        if not irscope:
            return [sys.executable, "-m", "torch.distributed.run", "--standalone", *number, str(script), *given]
        store = ["--store", str(script.with_name("runs.db"))]
        return [*IRSCOPE, "run", "--json", "--lane", "fast", *number, *store, str(script), "--", *given]


def run(job: Job, milliseconds: float, irscope: bool) -> tuple[float, dict[str, Any]]:
    """Seconds of the median step, and irscope's report."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "waits.py")
        script.write_text(SCRIPT, encoding="utf-8")
        command = job.command(milliseconds, script, irscope)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return seconds_of_step(done.stderr if irscope else done.stdout), json.loads(done.stdout) if irscope else {}


def wait_of(job: Job, milliseconds: float) -> dict[str, Any]:
    """What irscope says of a sleep."""
    _, report = run(job, milliseconds, True)
    row: dict[str, Any] = {"sleep_ms": milliseconds, "width": job.width, "layers": job.layers}
    for one in report["waits"]:
        if one["line"] == line_of("reduce"):
            is_right = one["late"] == job.late % job.ranks and one["before_line"] == line_of("sleep")
            row |= {"typical_ms": round(one["typical"] * 1e3, 2), "is_right": is_right, "late": one["late"],
                    "before_line": one["before_line"], "calls": one["calls"], "late_calls": one["late_calls"]}  # fmt: skip
    return row if "typical_ms" in row else row | {"gaps": report["capture_gaps"]}


def overhead_of(job: Job, rounds: int) -> dict[str, Any]:
    """What capturing costs a step, in rounds that take turns."""
    pairs = [(run(job, 0.0, True)[0], run(job, 0.0, False)[0]) for _ in range(rounds)]
    ratios = [round(mine / other, 3) for mine, other in pairs]
    plain = round(statistics.median(other for _, other in pairs) * 1e3, 2)
    return {
        "width": job.width,
        "layers": job.layers,
        "step_ms": plain,
        "ratios": ratios,
        "median": statistics.median(ratios),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=256, help="of the layers, and eight times the batch")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--late", type=int, default=-1)
    parser.add_argument("--sleeps", type=float, nargs="*", default=SLEEPS, metavar="MS")
    options = parser.parse_args()
    print(f"{options.ranks} ranks, {options.backend}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    job = Job(options.ranks, options.backend, options.steps, options.width, options.layers, options.late)
    for milliseconds in options.sleeps:
        print(json.dumps(wait_of(job, milliseconds)), flush=True)
    if options.rounds:
        print(json.dumps(overhead_of(job, options.rounds)))


if __name__ == "__main__":
    main()
