"""Which ranks compile something else, in real jobs: the index of a device alone, and a real constant beside it.

    .venv/bin/python benchmarks/rank_cases.py [--ranks 2] [--strategies ddp fsdp2 tp] [--json FILE]

One job for each strategy has twelve compiled modules whose code has the index of the rank's device and nothing else of
the rank, and twelve that also have something of the rank that becomes a part of the graph.  Each is wrapped as the
strategy does, and makes a step with its backward.  Printed are the divergences that irscope names at another line than
a planted one (*false*), and the planted ones that it does not name at their line (*missed*).  It needs a GPU a rank.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STRATEGIES = ("ddp", "fsdp2", "tp")
DEVICE = (
    "y = y + torch.arange(16, device=f'cuda:{RANK}')",
    "y = y + torch.zeros(16, device=torch.device('cuda', RANK))",
    "y = y.to(f'cuda:{RANK}', torch.float64).float()",
    "y = y.to(RANK) * 2",
    "y = y + torch.ones(16, device=RANK)",
    "y = y.cuda(RANK).sin()",
    "y = y + torch.full((16,), 2.0, device=self.where)",
    "y = y + torch.tensor([1.0, 2.0] * 8, device=f'cuda:{RANK}')",
    "y = y + torch.linspace(0, 1, 16, device=y.device)",
    "y = y + torch.eye(16, device=f'cuda:{RANK}')[0]",
    "y = y.cos() if y.device.index == RANK else y.sin()",
    "y = y + torch.empty(16, device=f'cuda:{torch.cuda.current_device()}').fill_(1)",
)
"""Statements with the index of the device alone."""
CONSTANT = (
    "y = y * (RANK + 2)",
    "y = y + 0.5 * RANK",
    "y = y[:, : 8 + RANK]",
    "y = y + torch.full((16,), float(RANK), device=y.device)",
    "y = torch.roll(y, RANK, -1)",
    "y = y.exp() if RANK == 0 else y.log1p()",
    "y = y.narrow(1, RANK, 4)",
    "y = y.abs().pow(RANK + 2)",
    "y = torch.nn.functional.pad(y, (0, RANK))",
    "y = y.clamp(min=RANK / 4)",
    "y = y.masked_fill(y > 0, RANK + 10.0)",
    "y = y.view(-1, 2 << RANK).sum(1)",
)
"""Statements with something of the rank that the graph keeps."""
HEAD = """\
import os, sys
import torch
import torch.distributed as dist
import torch.nn as nn

RANK, STRATEGY = int(os.environ["RANK"]), sys.argv[1]
torch.cuda.set_device(RANK)
dist.init_process_group("nccl")
torch._dynamo.config.recompile_limit = 64
"""
MODULE = """

class Case{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)
        self.where = torch.device("cuda", RANK)

    def forward(self, x):
        y = self.second(torch.relu(self.first(x)))
{statements}
        return y.float().square().mean()
"""
TAIL = """

def wrapped(net):
    if STRATEGY == "ddp":
        return nn.parallel.DistributedDataParallel(net, device_ids=[RANK])
    mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
    if STRATEGY == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(net, mesh=mesh)
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    return parallelize_module(net, mesh, {"first": ColwiseParallel(), "second": RowwiseParallel()})


for case in CASES:
    torch.manual_seed(0)
    net = case().cuda()
    program = torch.compile(wrapped(net))
    program(torch.randn(4, 16, device="cuda")).backward()
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def script() -> tuple[str, list[int]]:
    """The text of the job's script, and the lines of the planted constants, counted from 1."""
    bodies = [[statement] for statement in DEVICE] + [list(pair) for pair in zip(DEVICE, CONSTANT, strict=True)]
    text = HEAD
    for number, body in enumerate(bodies):
        text += MODULE.format(number=number, statements="\n".join(f"        {statement}" for statement in body))
    text += f"\n\nCASES = [{', '.join(f'Case{number}' for number in range(len(bodies)))}]\n" + TAIL
    lines = text.split("\n")
    return text, [at for at, line in enumerate(lines, 1) if line.strip() in CONSTANT]


def run_of(strategy: str, ranks: int, lane: str) -> dict[str, Any]:
    """What irscope names in the job of a strategy."""
    text, planted = script()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "job.py")
        file.write_text(text, encoding="utf-8")
        command = [
            sys.executable, "-m", "irscope", "run", "--json", "--lane", lane, "--nproc-per-node", str(ranks),
            "--store", f"{folder}/runs.db", str(file), "--", strategy,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout.strip():
            raise SystemExit(done.stderr)
        report = json.loads(done.stdout)
    found = [one for one in report["findings"] if one["kind"] == "rank-divergence"]
    named = {one["range"]["start"]["line"] for one in found if one["file"] == str(file)}
    elsewhere = [f"{os.path.basename(one['file'])}:{one['range']['start']['line']} {one['message']}" for one in found
                 if one["file"] != str(file) or one["range"]["start"]["line"] not in planted]  # fmt: skip
    lines = text.split("\n")
    return {
        "strategy": strategy, "ranks": ranks, "lane": lane, "outcome": report["outcome"]["kind"],
        "message": report["outcome"]["message"], "compiles": len(report["compiles"]), "planted": len(planted),
        "named": len(named & {*planted}), "false": elsewhere,
        "missed": [f"{at}: {lines[at - 1].strip()}" for at in planted if at not in named],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--strategies", nargs="*", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--lane", choices=("fast", "deep"), default="fast")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for strategy in options.strategies:
        rows.append(run_of(strategy, options.ranks, options.lane))
        print(json.dumps(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(row["false"] or row["missed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
