"""What `irscope attach` says of jobs that hang, and what an answer costs a job that does not.

    .venv/bin/python benchmarks/hangs.py [--ranks 2] [--backend gloo] [--cases loop compile mismatch dead] [--asks 10]

Each case of tests/cases/hangs is started by `irscope run`, and asked about until the answer names what is missing, at most a
minute.  Printed are the answers in words.  The cost is the time that a step is longer than the median while a rank
answers, less the same without questions, for each answer: as milliseconds, and as a share of the time of the steps if
somebody asks every ten seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

IRSCOPE = [sys.executable, "-m", "irscope"]
HANGS = Path(__file__).parents[1] / "tests" / "cases" / "hangs" / "hangs.py"
STEPS = """\
import os, sys, time
import torch
import torch.distributed as dist

backend, steps = sys.argv[1], int(sys.argv[2])
dist.init_process_group(backend)
rank = dist.get_rank()
device = f"cuda:{rank}" if backend == "nccl" else "cpu"
if backend == "nccl":
    torch.cuda.set_device(rank)
step = torch.compile(lambda x: (x @ x).relu().mean(), backend="eager")
x, spent = torch.randn(512, 512, device=device), []
for number in range(steps + 5):
    begun = time.perf_counter()
    mean = step(x)
    dist.all_reduce(mean)
    mean.item()
    time.sleep(0.005)
    spent.append(time.perf_counter() - begun)
if rank == 0:
    median = sorted(spent[5:])[steps // 2]
    print("MEDIAN AND LONGER", median, sum(max(0.0, one - median) for one in spent[5:]), flush=True)
"""
MISSING = {"loop": "Rank 1 has not come to it", "compile": "Rank 1 has not come to it", "mismatch": "broadcast", "dead": "Rank 1 has no process"}  # fmt: skip
"""What an answer to a case must have."""


def answer(pid: int) -> str:
    return subprocess.run([*IRSCOPE, "attach", str(pid)], capture_output=True, text=True, check=False).stdout


def of_case(case: str, ranks: int, backend: str) -> tuple[bool, str]:
    """Whether the answer names what is missing, and the answer."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*IRSCOPE, "run", "--lane", "fast", "--nproc-per-node", str(ranks), "--store", f"{folder}/runs.db",
                   str(HANGS), "--", case, backend]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
            try:
                end, said = time.monotonic() + 60, ""
                while time.monotonic() < end and job.poll() is None:
                    said = answer(job.pid) or said
                    if MISSING[case] in said:
                        return True, said
                    time.sleep(1)
                return False, said
            finally:
                job.terminate()


def steps_of(ranks: int, backend: str, steps: int, asks: int) -> tuple[float, float]:
    """Seconds of the median step of the first rank, and of what longer steps are longer, while somebody asks so often."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "steps.py")
        script.write_text(STEPS, encoding="utf-8")
        command = [*IRSCOPE, "run", "--json", "--lane", "fast", "--nproc-per-node", str(ranks),
                   "--store", f"{folder}/runs.db", str(script), "--", backend, str(steps)]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
            while asks and job.poll() is None and "steps.py" not in answer(job.pid):
                time.sleep(0.2)
            for _ in range(asks):
                answer(job.pid)
            _, printed = job.communicate(timeout=600)
        line = next(line for line in printed.split("\n") if "MEDIAN AND LONGER" in line)
        median, longer = (float(one) for one in line.split()[-2:])
        return median, longer


def cost(ranks: int, backend: str, steps: int, asks: int) -> dict[str, Any]:
    """What an answer costs."""
    (alone, longer_alone), (asked, longer_asked) = (steps_of(ranks, backend, steps, times) for times in (0, asks))
    each = (longer_asked - longer_alone) / asks
    return {"ms of an answer": round(each * 1e3, 3), "share, asked every 10 s": round(each / 10, 5),
            "median of a step, ms": [round(one * 1e3, 3) for one in (alone, asked)]}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--cases", nargs="*", choices=[*MISSING], default=[*MISSING])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--asks", type=int, default=10)
    options = parser.parse_args()
    missed = 0
    for case in options.cases:
        is_named, said = of_case(case, options.ranks, options.backend)
        missed += not is_named
        print(f"== {case}: {'named' if is_named else 'MISSED'}\n{said}", flush=True)
    if options.asks:
        print(json.dumps(cost(options.ranks, options.backend, options.steps, options.asks)))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
