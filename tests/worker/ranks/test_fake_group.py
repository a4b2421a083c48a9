"""Ranks of a job that does not exist: what they compile under the fake process group, and where they differ."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import seeded
from irscope.driver.driver import RunSpec
from irscope.driver.merging import merge
from irscope.driver.ranks import rank_spec, real_specs, run_ranks
from irscope.protocol import Lane, OutcomeKind, Report
from irscope.store.store import Store
from support import lines_marked, run_cli, shared_worker, write

pytestmark = pytest.mark.filterwarnings("ignore")
_MARK = re.compile(r"# ← (\w+)$")
RANKS, WORLD = (0, 5), 8


def merged(folder: Path, source: str, lane: Lane = Lane.FAST) -> Report:
    """The report of both ranks of a script."""
    script, path = write(folder, seeded.HEAD + source), str(folder / "runs.db")
    specs = [rank_spec(RunSpec(str(script), lane=lane, symbolic_trace=False), WORLD, rank) for rank in RANKS]
    done = run_ranks(specs, path, worker=shared_worker())
    with Store(path) as store:
        report = merge(store, WORLD, done)
        assert store.report(report.run).ranks == report.ranks, "the merged report is kept"
    assert report.outcome.kind is OutcomeKind.COMPLETED, report.outcome
    assert report.capture_gaps == () or {gap.what for gap in report.capture_gaps} == {"what the script does on the GPU"}
    return report


def divergences(report: Report) -> set[tuple[int, str]]:
    found = [finding for finding in report.findings if finding.kind == "rank-divergence"]
    assert all(finding.ranks == RANKS for finding in found)
    return {(finding.range.start.line, finding.code.removeprefix("rank-divergence-")) for finding in found}


def wanted(source: str) -> set[tuple[int, str]]:
    lines = enumerate((seeded.HEAD + source).split("\n"), 1)
    return {(at, mark[1]) for at, line in lines if (mark := _MARK.search(line))}


_NORMAL = ("get_rank",)
"""Of the small scripts those of the normal tier."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _NORMAL else pytest.mark.nightly) for name in seeded.DIVERGING]
)
def test_a_divergence_is_at_the_line_that_caused_it(tmp_path: Path, name: str) -> None:
    source = seeded.DIVERGING[name]
    assert divergences(merged(tmp_path, source)) == wanted(source) != set()


@pytest.mark.nightly
@pytest.mark.parametrize("name", seeded.ALIKE)
def test_ranks_that_compile_the_same_do_not_diverge(tmp_path: Path, name: str) -> None:
    report = merged(tmp_path, seeded.ALIKE[name])
    assert divergences(report) == set()
    assert report.compiles


@pytest.mark.nightly
@pytest.mark.parametrize("name", seeded.DEEP)
def test_a_number_from_the_device_mesh(tmp_path: Path, name: str) -> None:
    source = seeded.DEEP[name]
    report = merged(tmp_path, source, Lane.DEEP)
    assert divergences(report) == wanted(source) != set()
    finding = next(finding for finding in report.findings if finding.kind == "rank-divergence")
    assert "compile_on_one_rank = True" in finding.hints[0]
    for rank in report.ranks:
        reduced = [each for each in rank.collectives if each.operation == "all_reduce"]
        # The activations of 4 × 8 × 32 floats: of the embedding and of `down`, and in the backward of `up`.
        assert [each.sent_bytes for each in reduced] == [4 * 8 * 32 * 4] * 3
        assert rank.memory is not None and rank.memory > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", seeded.ALIKE_DEEP)
def test_tensor_parallel_ranks_do_not_diverge(tmp_path: Path, name: str) -> None:
    report = merged(tmp_path, seeded.ALIKE_DEEP[name], Lane.DEEP)
    assert divergences(report) == set()
    assert all(rank.collectives for rank in report.ranks)


_NAMED = (
    seeded.HEAD.replace("nccl", "gloo")
    + """\
@torch.compile
def f(x):
    y = x * rank  # ← constant
    return funcol.all_reduce(y, "sum", dist.group.WORLD)

f(torch.ones(8))
"""
)


@pytest.mark.nightly
def test_the_fake_group_and_four_real_ranks_agree(tmp_path: Path) -> None:
    """The same graphs, collectives and findings as with four processes and gloo."""
    script, path = write(tmp_path, _NAMED), str(tmp_path / "runs.db")
    spec, world = RunSpec(str(script), lane=Lane.FAST), 4
    reports = []
    for specs in (real_specs(spec, world), [rank_spec(spec, world, rank) for rank in range(world)]):
        done = run_ranks(specs, path)
        with Store(path) as store:
            report = merge(store, world, done)
            texts = [store.stage_text(rank.run, "0/0/dynamo-graph") for rank in report.ranks]
        assert report.outcome.kind is OutcomeKind.COMPLETED, report.outcome
        found = [(one.code, one.ranks, one.range.start.line) for one in report.findings]
        sent = [[(each.operation, each.sent_bytes, each.line) for each in rank.collectives] for rank in report.ranks]
        reports.append((texts, found, sent))
    real, fake = reports
    (line,) = lines_marked(_NAMED, "# ← constant")
    assert fake == real
    assert real[1] == [("rank-divergence-constant", (0, 1, 2, 3), line)]


IN_BUCKETS = """
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x

model = torch.compile(DistributedDataParallel(Net(), bucket_cap_mb=2))
model(torch.randn(8, 512)).sum().backward()
"""


@pytest.mark.nightly
def test_buckets_of_ddp_run_beside_the_backwards_before_them(tmp_path: Path) -> None:
    report = merged(tmp_path, IN_BUCKETS, Lane.DEEP)
    layer = 4 * (512 * 512 + 512)
    for rank in report.ranks:
        assert [(one.name, one.bytes, len(one.beside)) for one in rank.buckets] == [
            ("submod_2", layer, 2), ("submod_1", 2 * layer, 1), ("submod_0", layer, 0),
        ]  # fmt: skip
        assert [one.operations > 0 for one in rank.buckets] == [True, True, False]
        with Store(str(tmp_path / "runs.db")) as store:
            heads = [store.stage_text(rank.run, one.backward).split("\n", 1)[0] for one in rank.buckets]
        assert heads == [f"# AOT ID: ['{number}_backward']" for number in (2, 1, 0)]


BESIDE = """
import torch._inductor.config as config

config.reorder_for_compute_comm_overlap = True
config.reorder_for_compute_comm_overlap_passes = ["sink_waits", "raise_comms"]

@torch.compile
def f(x, w):
    gathered = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    other = (w @ w).relu() @ w
    return gathered + 1, other

f(torch.ones(8, 8), torch.ones(8, 8))
"""


@pytest.mark.nightly
def test_what_the_scheduler_puts_beside_a_collective(tmp_path: Path) -> None:
    report = merged(tmp_path, BESIDE, Lane.DEEP)
    (found,) = report.ranks[0].overlaps
    assert (found.stage, found.operations, found.group_size) == ("0/0/output-code", 3, WORLD)
    assert [name.startswith("cpp_fused_relu") for name in found.work] == [False, True, False]
    with Store(str(tmp_path / "runs.db")) as store:
        lines = store.stage_text(report.ranks[0].run, found.stage).split("\n")
    assert "all_gather_into_tensor" in lines[found.start - 1] and "wait_tensor" in lines[found.wait - 1]


OFTEN_LATE = """\
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for _ in range(3):
    if dist.get_rank() == 1:
        time.sleep(1)  # sleep
    dist.all_reduce(torch.ones(4))  # reduce
dist.destroy_process_group()
"""


def test_the_rank_and_the_line_that_others_wait_for(tmp_path: Path) -> None:
    """On a busy machine, too: the sleep is longer than any pause of a rank."""
    script, path = write(tmp_path, OFTEN_LATE), str(tmp_path / "runs.db")
    done = run_ranks(real_specs(RunSpec(str(script), lane=Lane.FAST, symbolic_trace=False), 2), path)
    with Store(path) as store:
        (wait,) = merge(store, 2, done).waits
    (reduce,), (sleep,) = (lines_marked(OFTEN_LATE, f"# {mark}") for mark in ("reduce", "sleep"))
    assert (wait.operation, wait.line, wait.late, wait.before_line) == ("all_reduce", reduce, 1, sleep)
    assert (wait.calls, wait.waited[0] > wait.waited[1]) == (3, True)


LATE = """\
import time
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives

dist.init_process_group("gloo")


@torch.compile
def summed(x):
    return collectives.all_reduce(x * 2, "sum", dist.group.WORLD) + 1


summed(torch.ones(4))
dist.barrier()
if dist.get_rank() == 1:
    time.sleep(1.5)
dist.all_reduce(torch.ones(4))
"""


@pytest.mark.nightly
def test_the_rank_that_others_wait_for(tmp_path: Path) -> None:
    script, path = write(tmp_path, LATE), str(tmp_path / "runs.db")
    spec = RunSpec(str(script), lane=Lane.FAST, symbolic_trace=False)
    done = run_ranks(real_specs(spec, 2), path)
    with Store(path) as store:
        report = merge(store, 2, done)
        assert store.report(report.run).waits == report.waits
    waits = {one.line: one for one in report.waits}
    late = waits[18]
    assert (late.operation, late.calls, late.late, late.ranks) == ("all_reduce", 1, 1, (0, 1))
    assert 1.4 < late.waited[0] < 10 and late.waited[1] == 0
    assert {one.operation for one in report.waits} == {"all_reduce", "barrier"}


@pytest.mark.nightly
def test_torchrun_starts_the_ranks(tmp_path: Path) -> None:
    script = write(tmp_path, LATE)
    done = run_cli(
        "run", "--nproc-per-node", "2", "--nnodes", "1", "--master-port", "0", "--rdzv-backend", "c10d", "--lane", "fast",
        "--json", "--store", tmp_path / "runs.db", script,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["world"] == 2 and [one["rank"] for one in report["ranks"]] == [0, 1]
    assert {one["line"] for one in report["waits"]} >= {15, 18}


CACHED = """\
import os

os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(os.path.dirname(__file__), "cache" + os.environ["RANK"])
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives

dist.init_process_group("gloo")


@torch.compile
def summed(x):
    y = x.sin() * 2
    return collectives.all_reduce(y, "sum", dist.group.WORLD) + 1


summed(torch.ones(4))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.nightly
def test_a_cache_that_serves_one_of_two_real_ranks(tmp_path: Path) -> None:
    script = write(tmp_path, CACHED)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*launch, str(script)], check=True, capture_output=True)  # the user's own run fills both caches
    for wanted in (set(), {(12, "cache")}):
        done = run_cli("run", "--nproc-per-node", "2", "--json", "--store", tmp_path / "runs.db", script)
        report = json.loads(done.stdout)
        assert done.returncode == 0, done.stderr
        found = [each for each in report["findings"] if each["kind"] == "rank-divergence"]
        codes = {(each["range"]["start"]["line"], each["code"].removeprefix("rank-divergence-")) for each in found}
        assert codes == wanted, "both caches have the graph; then that of rank 0 alone"
        waits = {(each["operation"], Path(each["file"]).name, each["line"]) for each in report["waits"]}
        assert waits == {("all_reduce", script.name, 14), ("barrier", script.name, 18)}
        shutil.rmtree(tmp_path / "cache1")
    assert "rank 0 has a hit for `summed`, rank 1 has a miss" in found[0]["message"]
