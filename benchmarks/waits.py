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
from typing import Any

IRSCOPE = [sys.executable, "-m", "irscope"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=256, help="of the layers, and eight times the batch")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--late", type=int, default=-1)
    parser.add_argument("--sleeps", type=float, nargs="*", default=[5.0, 20.0, 50.0], metavar="MS")
    options = parser.parse_args()
    late = options.late % options.ranks
    print(f"{options.ranks} ranks, {options.backend}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "waits.py")
        script.write_text(SCRIPT, encoding="utf-8")
        number = ["--nproc-per-node", str(options.ranks)]
        after = [str(late), str(options.steps), str(options.width), str(options.layers)]

        def captured(milliseconds: float) -> tuple[dict[str, Any], str]:
            given = [options.backend, str(milliseconds), *after]
            command = [
                *IRSCOPE,
                "run",
                "--json",
                "--lane",
                "fast",
                *number,
                "--store",
                f"{folder}/runs.db",
                str(script),
            ]
            done = subprocess.run([*command, "--", *given], capture_output=True, text=True, check=True)
            return json.loads(done.stdout), done.stderr

        def plain() -> float:
            launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", *number, str(script)]
            given = [options.backend, "0", *after]
            return seconds_of_step(subprocess.run([*launch, *given], capture_output=True, text=True, check=True).stdout)

        for milliseconds in options.sleeps:
            report, _ = captured(milliseconds)
            found = [one for one in report["waits"] if one["line"] == line_of("reduce")]
            for one in found:
                typical = one["typical"] * 1e3
                right = one["late"] == late and one["before_line"] == line_of("sleep")
                print(
                    f"sleep {milliseconds:.0f} ms: {typical:.2f} ms, error {typical - milliseconds:+.2f} ms, rank {one['late']} "
                    f"in {one['late_calls']} of {one['calls']} calls, line {one['before_line']}{'' if right else ' WRONG'}"
                )
            if not found:
                print(f"sleep {milliseconds:.0f} ms: no row; gaps: {report['capture_gaps']}")
        rounds = [(seconds_of_step(captured(0.0)[1]), plain()) for _ in range(options.rounds)]
        print(f"step: {statistics.median(other for _, other in rounds) * 1e3:.2f} ms without irscope")
        print("overhead of a step:", ", ".join(f"{mine / other:.3f}" for mine, other in rounds))
        print(f"median {statistics.median(mine / other for mine, other in rounds):.3f}")


if __name__ == "__main__":
    main()
