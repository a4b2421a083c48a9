"""What irscope says about CUDA graphs and autotuning on a GPU, next to what PyTorch itself logs of the same script.

    python benchmarks/cuda_graphs.py [CASE…]

Needs a GPU. Each case is a small script that makes one thing happen: a recording, a recording for each size, a recording again
since an address changed, each reason to have no graph, several pools, a graph break, a recompilation, max-autotune. For each it prints

- ``PyTorch``: counts and first lines of the messages of PyTorch's logger for CUDA graphs, its counter of skips, and its memory pools,
  from a process without irscope;
- ``irscope``: the CUDA-graph row of `irscope profile`, findings of skips, costs of breaks and recompilations, gaps, tables of autotuning,
  and capture gaps.

`irscope profile` calls each program again, with the arguments of its first call, so it may see more recordings than the script makes.
``expected`` says in words what should be there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import irscope.driver.profiling as driver
from irscope.driver.driver import RunSpec
from irscope.pipelines.registry import role_of
from irscope.profiling.profile import Profile
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

_HEAD = """\
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
D = "cuda"
"""
CASES: dict[str, tuple[str, str]] = {
    "replayed": (
        "one graph recorded, replayed once in a step, one pool, nothing skipped",
        """
net = torch.compile(nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).to(D), mode="reduce-overhead")
with torch.no_grad():
    for _ in range(5):
        net(torch.randn(64, 256, device=D))
""",
    ),
    "sizes": (
        "a graph recorded for each of three sizes; not a graph recorded again",
        """
def f(x):
    return (x.relu() + 1).softmax(-1)
f = torch.compile(f, mode="reduce-overhead", dynamic=True)
with torch.no_grad():
    for size in (64, 128, 192):
        for _ in range(4):
            f(torch.randn(size, 256, device=D))
""",
    ),
    "static_address": (
        "a graph recorded again, since the address of a static input changed; the reason names the input",
        """
def f(x, w):
    return (x @ w).relu()
f = torch.compile(f, mode="reduce-overhead")
with torch.no_grad():
    for _ in range(3):
        w = torch.randn(256, 256, device=D)
        torch._dynamo.mark_static_address(w, guard=False)
        for _ in range(3):
            f(torch.randn(64, 256, device=D), w)
        kept = globals().setdefault("kept", []); kept.append(w)
""",
    ),
    "managed_address": (
        "graphs recorded again, since an input that is another graph's output has another address",
        """
def f(x):
    return x * 2 + 1
def g(x):
    return x.softmax(-1)
def h(x):
    return x.cos() + 3
f, g, h = (torch.compile(each, mode="reduce-overhead") for each in (f, g, h))
with torch.no_grad():
    for n in range(12):
        torch.compiler.cudagraph_mark_step_begin()
        x = torch.randn(64, 256, device=D)
        a = f(x)
        b = h(x)
        g(a if n % 2 else b)
""",
    ),
    "rerecord_limit": (
        "after the limit the function runs without a graph: a skip with `exceeding max re-recording limit`",
        """
import torch._inductor.config as config
config.triton.cudagraph_unexpected_rerecord_limit = 1
def f(x):
    return x * 2 + 1
def h(x):
    return x.cos() + 3
def g(x):
    return x.softmax(-1)
f, g, h = (torch.compile(each, mode="reduce-overhead") for each in (f, g, h))
with torch.no_grad():
    for n in range(24):
        torch.compiler.cudagraph_mark_step_begin()
        x = torch.randn(64, 256, device=D)
        y = x
        for _ in range(n % 6):
            y = f(y)
        g(y)
""",
    ),
    "mutated_input": (
        "a skip: mutated inputs, at the line with add_",
        """
def f(x, y):
    x.add_(1)
    return x * y
f = torch.compile(f, mode="reduce-overhead")
with torch.no_grad():
    x, y = torch.randn(256, 256, device=D), torch.randn(256, 256, device=D)
    for _ in range(5):
        f(x.clone(), y)
""",
    ),
    "cpu_tensor": (
        "a skip, or a partition without a graph (torch 2.9 and later), for the line with the CPU tensor",
        """
def f(x, scale):
    y = x.relu() * 2
    z = scale.exp()
    return y * z
f = torch.compile(f, mode="reduce-overhead")
with torch.no_grad():
    for _ in range(5):
        f(torch.randn(512, 512, device=D), torch.tensor(2.0))
""",
    ),
    "cpu_tensor_whole": (
        "a skip: cpu device, at the line with the CPU tensor",
        """
import torch._inductor.config as config
config.graph_partition = False
def f(x, scale):
    y = x.relu() * 2
    z = scale.exp()
    return y * z
f = torch.compile(f, mode="reduce-overhead")
with torch.no_grad():
    for _ in range(5):
        f(torch.randn(512, 512, device=D), torch.tensor(2.0))
""",
    ),
    "incompatible": (
        "a skip or a partition: incompatible operator (nonzero), at its line",
        """
import torch._dynamo.config
torch._dynamo.config.capture_dynamic_output_shape_ops = True
def f(x):
    y = x.relu()
    z = y.nonzero()
    return z + 1
f = torch.compile(f, mode="reduce-overhead")
with torch.no_grad():
    for _ in range(5):
        f(torch.randn(64, 64, device=D))
""",
    ),
    "training": (
        "forward and backward recorded and replayed, pools with their memory",
        """
net = torch.compile(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(D), mode="reduce-overhead")
for _ in range(5):
    torch.compiler.cudagraph_mark_step_begin()
    net.zero_grad()
    net(torch.randn(64, 256, device=D)).square().mean().backward()
""",
    ),
    "break": (
        "a graph break whose cost in a step is about that of sort and of one more entry",
        """
def f(x):
    x = F.gelu(x @ x)
    torch._dynamo.graph_break()
    x = x.sort(-1)[0]
    torch._dynamo.graph_break()
    return (x @ x).relu()
f = torch.compile(f)
with torch.no_grad():
    for _ in range(4):
        f(torch.randn(1024, 1024, device=D))
""",
    ),
    "recompiled": (
        "a function with five compiles: seconds of compiling, and the guards of a step",
        """
def f(x, n):
    return (x * n).relu()
f = torch.compile(f, dynamic=False)
with torch.no_grad():
    for n in (1.5, 2.5, 3.5):
        for size in (64, 128):
            f(torch.randn(size, 256, device=D), n)
""",
    ),
    "max_autotune": (
        "tables of choices for mm and addmm, templates and library, the fastest first",
        """
def f(x, w, b):
    y = F.relu(torch.addmm(b, x, w))
    return y @ w
f = torch.compile(f, mode="max-autotune")
with torch.no_grad():
    for _ in range(4):
        f(*(torch.randn(*size, device=D, dtype=torch.float16) for size in ((1024, 512), (512, 512), (512,))))
""",
    ),
}
_TRUTH = """
import logging, sys, runpy, json, collections
lines = []
class Heard(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
import torch
for name in ("torch._inductor.cudagraph_trees", "torch._inductor.cudagraph_utils"):
    for logger in (logging.getLogger(name), logging.getLogger(name + ".__cudagraphs")):
        logger.setLevel(logging.DEBUG)
        logger.addHandler(Heard())
sys.argv = [sys.argv[1]]
runpy.run_path(sys.argv[0], run_name="__main__")
torch.cuda.synchronize()
from torch._dynamo.utils import counters
def kind(text):
    words = text.split("] ", 1)[-1]
    return " ".join(words.split()[:2]).split("=")[0]
print(json.dumps({
    "messages": collections.Counter(kind(each) for each in lines),
    "again": [each[:400] for each in lines if "Re-recording" in each][:4],
    "skips": [each[:600] for each in lines if "skipping cudagraph" in each][:4],
    "counters": {key: value for key, value in counters["inductor"].items() if "cudagraph" in key},
    "pools": sorted(collections.Counter(
        {str(each.get("segment_pool_id")): 0 for each in torch.cuda.memory_snapshot()}).keys()),
}))
"""


def main() -> None:
    """Prints both sides of each case."""
    for name in sys.argv[1:] or CASES:
        expected, body = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / f"{name}.py"
            script.write_text(_HEAD + body)
            print(f"\n=== {name}\nexpected: {expected}", flush=True)
            print("\n".join([*_truth(script), *_said(script)]), flush=True)


def _truth(script: Path) -> Iterator[str]:
    done = subprocess.run(
        [sys.executable, "-c", _TRUTH, str(script)], capture_output=True, text=True, cwd=str(script.parent)
    )
    if done.returncode:
        yield f"PyTorch: the script failed: {done.stderr.strip()[-1500:]}"
        return
    for key, value in json.loads(done.stdout.strip().split("\n")[-1]).items():
        for each in value if isinstance(value, list) and key != "pools" else [value]:
            yield f"PyTorch  {key}: {json.dumps(each)}"


def _said(script: Path) -> Iterator[str]:
    spec = RunSpec(
        script=str(script), args=(), python=sys.executable, cwd=str(script.parent), symbolic_trace=False, profile=10
    )  # fmt: skip
    with Store(str(script.parent / "runs.db")) as store:
        try:
            run, _, profile = driver.profiled(spec, store)
        except driver.NotMeasured as error:
            yield f"irscope: not measured: {error}"
            return
        yield from _of_profile(profile)
        report = store.report(run)
        for one in report.findings:
            if one.kind in ("cudagraph-skip", "graph-break", "recompilation", "slow-line"):
                yield f"irscope  {one.kind} {os.path.basename(one.file)}:{one.range.start.line}: {one.message[:300]}"
        for gap in report.capture_gaps:
            yield f"irscope  capture gap: {gap}"
        for compile in report.compiles:
            for stage in compile.stages:
                if role_of(stage.name) is Role.TUNING:
                    yield f"irscope  autotuning {stage.id}"
                    yield from (f"    {line[:170]}" for line in store.stage_text(run, stage.id).split("\n")[:40])


def _of_profile(profile: Profile) -> Iterator[str]:
    graphs = profile.cuda_graphs
    yield f"irscope  step {1e6 * profile.step_seconds:.1f} µs, owned {profile.owned_seconds / profile.step_seconds:.3f}"
    yield f"irscope  in a step: {graphs.replayed} replayed, {graphs.recorded} recorded; before: {graphs.recordings} recordings"
    yield from (f"irscope  again: {one}" for one in graphs.again)
    yield from (f"irscope  skipped {os.path.basename(one.file)}:{one.line}: {one.why[:300]}" for one in graphs.skipped)
    yield from (f"irscope  pool {one}" for one in graphs.pools)
    for name in ("breaks", "recompiled"):
        yield from (f"irscope  {name}: {one}" for one in getattr(profile, name, ()))
    for gap in profile.gaps[:8]:
        yield f"irscope  gap {gap.kind} {1e6 * gap.seconds:.1f} µs {os.path.basename(gap.where)}"


if __name__ == "__main__":
    main()
