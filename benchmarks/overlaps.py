"""What the device computed beside the collectives of FSDP2, DDP and a pipeline: irscope's times, and the profiler's.

    .venv/bin/python benchmarks/overlaps.py [--ranks 2] [--strategies fsdp2 ddp pipeline] [--json FILE]

The script profiles its own steps with PyTorch's profiler, in the same run.  Of the first rank's kernels those of NCCL are
the collectives; the *hidden share* is the part of their time in which another kernel ran.  irscope's share is what it says
of the same run: the time that the stream of computations went on, of the time that the collectives took.  It needs a GPU
a rank.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

IRSCOPE = [sys.executable, "-m", "irscope"]
STRATEGIES = ("fsdp2", "ddp", "pipeline")
STEPS = 10
"""That the script profiles, after three and those of which it takes the time."""
TIMED = 30
SCRIPT = """\
import os, sys, time
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile

strategy, width, layers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
world = dist.get_world_size()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


torch.manual_seed(0)
net = nn.Sequential(*(Block() for _ in range(layers))).cuda()
for block in net:
    block.compile()
x = torch.randn(4096, width, device="cuda")
if strategy == "ddp":
    net = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
elif strategy == "fsdp2":
    from torch.distributed.fsdp import fully_shard

    for block in net:
        fully_shard(block)
    fully_shard(net)


def step():
    net(x).square().mean().backward()
    net.zero_grad()


if strategy == "pipeline":
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    half = nn.Sequential(*list(net)[rank * layers // world : (rank + 1) * layers // world])
    stage = PipelineStage(half, rank, world, torch.device("cuda", rank))
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda y, wanted: (y - wanted).square().mean())

    def step():
        schedule.step(*([x] if rank == 0 else []), target=torch.zeros_like(x))


for _ in range(3):
    step()
torch.cuda.synchronize()
dist.barrier()
begun = time.perf_counter()
for _ in range(TIMED):
    step()
torch.cuda.synchronize()
if rank == 0:
    print("STEP", (time.perf_counter() - begun) / TIMED, file=sys.stderr)
with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as prof:
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
if rank == 0:
    prof.export_chrome_trace(sys.argv[4])
dist.destroy_process_group()
"""


def shares(trace: dict[str, Any]) -> tuple[float, float]:
    """Microseconds of NCCL's kernels, and those in which another kernel ran."""
    kernels = [one for one in trace["traceEvents"] if one.get("cat") == "kernel"]
    other = sorted((one["ts"], one["ts"] + one["dur"]) for one in kernels if "nccl" not in one["name"].lower())
    took = beside = 0.0
    for one in kernels:
        if "nccl" in one["name"].lower():
            took += one["dur"]
            end, at = one["ts"] + one["dur"], one["ts"]
            for begin, until in other:
                if until > at and begin < end:
                    beside += max(0.0, min(until, end) - max(begin, at))
                    at = max(at, until)
    return took, beside


def run(
    strategy: str, ranks: int, width: int, layers: int, irscope: bool
) -> tuple[float, dict[str, Any], dict[str, Any]]:
    """Seconds of a step, the profiler's trace, and irscope's report."""
    with tempfile.TemporaryDirectory() as folder:
        file, trace = Path(folder, "job.py"), Path(folder, "trace.json")
        file.write_text(SCRIPT.replace("STEPS", str(STEPS)).replace("TIMED", str(TIMED)), encoding="utf-8")
        given = [strategy, str(width), str(layers), str(trace)]
        number = ["--nproc-per-node", str(ranks)]
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *number, str(file), *given]
        if irscope:
            store = ["--store", f"{folder}/runs.db"]
            command = [*IRSCOPE, "run", "--json", "--lane", "fast", *number, *store, str(file), "--", *given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not trace.exists():
            raise SystemExit(done.stderr)
        seconds = next(float(line.split()[-1]) for line in done.stderr.split("\n") if "STEP" in line)
        return seconds, json.loads(trace.read_text(encoding="utf-8")), json.loads(done.stdout) if irscope else {}


def overhead_of(strategy: str, ranks: int, width: int, layers: int, rounds: int) -> dict[str, Any]:
    """What capturing costs a step, in rounds that take turns."""
    pairs = [[run(strategy, ranks, width, layers, irscope)[0] for irscope in (True, False)] for _ in range(rounds)]
    ratios = [round(mine / other, 3) for mine, other in pairs]
    plain = round(statistics.median(other for _, other in pairs) * 1e3, 2)
    return {"strategy": strategy, "step_ms": plain, "ratios": ratios, "median": statistics.median(ratios)}


def of_strategy(strategy: str, ranks: int, width: int, layers: int) -> dict[str, Any]:
    """What irscope and the profiler say of one job."""
    _, trace, report = run(strategy, ranks, width, layers, True)
    took, hidden = shares(trace)
    rows = [
        {name: row[name] for name in ("operation", "module", "calls", "bytes", "line", "beside", "beside_seconds", "device_seconds")}
        for row in report["ranks"][0]["runtime"]
    ]  # fmt: skip
    timed = [row for row in rows if row["device_seconds"] is not None and row["calls"] >= STEPS]
    device, beside = (sum(row[name] for row in timed) for name in ("device_seconds", "beside_seconds"))
    return {
        "strategy": strategy, "ranks": ranks, "gaps": report["capture_gaps"], "rows": rows,
        "irscope_share": round(beside / device, 4) if device else None,
        "profiler_share": round(hidden / took, 4) if took else None, "profiler_ms": round(took / 1e3, 3),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--strategies", nargs="*", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for strategy in options.strategies:
        rows.append(of_strategy(strategy, options.ranks, options.width, options.layers))
        print(json.dumps(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
