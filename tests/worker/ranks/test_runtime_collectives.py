"""Collectives that no graph has: FSDP2's, DDP's and a pipeline's, on real ranks with gloo."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.merging import merge
from irscope.driver.ranks import rank_spec, real_specs, run_ranks
from irscope.protocol import Lane, OutcomeKind, RankReport
from irscope.store.store import Store
from support import lines_marked, write

pytestmark = pytest.mark.filterwarnings("ignore")

HEAD = """\
import torch
import torch.distributed as dist
import torch.nn as nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 512), nn.Linear(512, 512)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # layer
        return x


"""
FSDP2 = """\
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

net, mesh = Net(), init_device_mesh("cpu", (world,))
for block in net.layers:
    block.compile()
    fully_shard(block, mesh=mesh)
fully_shard(net, mesh=mesh)
for _ in range(2):
    net(torch.randn(8, 512)).sum().backward()  # backward
"""
DDP = """\
net = nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=2)
for _ in range(4):
    net(torch.randn(64, 512)).sum().backward()  # backward
"""
PIPELINE = """\
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

block = Block()
block.compile()
stage = PipelineStage(block, rank, world, torch.device("cpu"))
schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, wanted: (y - wanted).square().mean())
for _ in range(3):
    given = [torch.randn(8, 512)] if rank == 0 else []
    schedule.step(*given, target=torch.zeros(8, 512))  # step
"""
BLOCK = 4 * 2 * (512 * 512 + 512)
"""Bytes of a block's parameters."""


def ranks_of(folder: Path, source: str, fake: bool = False) -> tuple[RankReport, ...]:
    script, path = write(folder, HEAD + source), str(folder / "runs.db")
    spec = RunSpec(str(script), lane=Lane.FAST, symbolic_trace=False)
    done = run_ranks([rank_spec(spec, 2, rank) for rank in (0, 1)] if fake else real_specs(spec, 2), path)
    with Store(path) as store:
        report = merge(store, 2, done)
        assert store.report(report.run).ranks == report.ranks, "they are kept"
    assert report.outcome.kind is OutcomeKind.COMPLETED, report.outcome
    return report.ranks


def line(source: str, mark: str) -> int:
    (found,) = lines_marked(HEAD + source, f"# {mark}")
    return found


@pytest.mark.parametrize("fake", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_fsdp_s_collectives_have_their_module_and_line(tmp_path: Path, fake: bool) -> None:
    forward, backward = line(FSDP2, "layer"), line(FSDP2, "backward")
    for one in ranks_of(tmp_path, FSDP2, fake):
        assert [(each.operation, each.module, each.bytes, each.line, each.calls) for each in one.runtime] == [
            ("all_gather", "layers.0", BLOCK // 2, forward, 2),
            ("all_gather", "layers.1", BLOCK // 2, forward, 2),
            ("all_gather", "layers.1", BLOCK // 2, backward, 2),
            ("all_gather", "layers.0", BLOCK // 2, backward, 2),
            ("reduce_scatter", "layers.1", BLOCK, backward, 2),
            ("reduce_scatter", "layers.0", BLOCK, backward, 2),
        ]
        assert {each.beside for each in one.runtime} == {None if fake else 0}, "on a CPU FSDP2 waits in each call"
        assert {each.issuer for each in one.runtime} == {"FSDP2"}


def test_ddp_s_buckets_run_beside_the_rest_of_the_backward(tmp_path: Path) -> None:
    for one in ranks_of(tmp_path, DDP):
        # In its first backward DDP has buckets of its own; from the second on, those that it was asked for.
        buckets = [each for each in one.runtime if each.operation == "all_reduce" and each.calls == 3]
        assert [(each.issuer, each.module, each.bytes, each.line) for each in buckets] == [
            ("DDP", "layers.1.down, layers.1.up", BLOCK, line(DDP, "backward")),
            ("DDP", "layers.0.down, layers.0.up", BLOCK, line(DDP, "backward")),
        ]
        first, last = buckets
        assert (first.beside, last.beside) == (3, 0)
        assert first.beside_seconds is not None and first.beside_seconds > 0


def test_a_pipeline_s_sends_have_their_stage(tmp_path: Path) -> None:
    first, last = ranks_of(tmp_path, PIPELINE)
    at, sent = line(PIPELINE, "step"), 4 * 4 * 512
    assert [(one.operation, one.peer, one.module, one.bytes, one.line, one.calls) for one in first.runtime] == [
        ("send", 1, "stage 0 (Block), forward", sent, at, 6),
        ("recv", 1, "stage 0 (Block), backward", sent, at, 6),
    ]
    assert [(one.operation, one.peer, one.module) for one in last.runtime] == [
        ("recv", 0, "stage 1 (Block), forward"), ("send", 0, "stage 1 (Block), backward"),
    ]  # fmt: skip
    assert first.runtime[0].beside, "the first rank computes the next micro-batch meanwhile"
