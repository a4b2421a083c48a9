"""Scripts of `agents.py` whose answers are known by how they are made."""

from __future__ import annotations

CHAIN = """\
import torch


@torch.compile
def f(x, w):
    a = x.sin()
    b = a @ w
    c = b.cos()
    d = c @ w
    e = d.tanh()
    g = e @ w
    h = torch.exp(g)
    i = h @ w
    return torch.relu(i)


f(torch.randn(64, 64), torch.randn(64, 64))
"""
"""Each pointwise line is a kernel, since products of matrices are between them."""

BLOCKS = """\
import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = torch.nn.LayerNorm(size)
        self.qkv = torch.nn.Linear(size, 3 * size)
        self.up = torch.nn.Linear(size, 4 * size)
        self.down = torch.nn.Linear(4 * size, size)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1)
        x = x + weights @ v
        h = F.gelu(self.up(x))
        h = torch.sigmoid(self.down(h))
        return x * h


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(64) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return torch.log_softmax(x, -1)


with torch.no_grad():
    torch.compile(Model().eval())(torch.randn(2, 16, 64))
"""
"""Four layers, as models have them: a line has a kernel in each."""

KERNELS = {
    "chain": (CHAIN, {"a = ": "sin", "c = ": "cos", "e = ": "tanh", "h = ": "exp", "return ": "relu"}),
    "blocks": (BLOCKS, {"weights = ": "softmax", "h = F.gelu": "gelu", "h = torch.sigmoid": "sigmoid",
                        "q, k, v": "layer_norm", "return torch.log": "log_softmax"}),
}  # fmt: skip
"""By script: how a line begins, and what is in the name of its kernel."""

APART = """\
import torch


@torch.compile
def f(x, y, s, t):
    a = x.sum(0)
    b = y.argmax(1)
    c = torch.cumsum(s, 0)
    d = s.amax(1)
    e = torch.softmax(t, 0)
    g = t.t().contiguous().mean(1)
    return a, b, c, d, e, g


f(torch.randn(96, 48), torch.randn(96, 48), torch.randn(32, 80), torch.randn(40, 24))
"""
"""Reductions that Inductor keeps apart, each pair with a reason in PyTorch's own log."""

_PLANTED = """\
import torch
import torch._inductor.config as config


def change(graph):
    for node in getattr(graph, "graph", graph).nodes:
        if node.target is torch.ops.aten.add.Tensor:
            node.target = torch.ops.aten.sub.Tensor


config.HOOK = change


@torch.compile
def f(x, y):
    return torch.relu(x + y) * 2


with torch.no_grad():
    f(torch.randn(8, 8), torch.randn(8, 8))
"""
HOOKS = ("joint_custom_pre_pass", "joint_custom_post_pass", "post_grad_custom_pre_pass", "post_grad_custom_post_pass")
PLANTED = {hook: _PLANTED.replace("HOOK", hook) for hook in HOOKS}
"""By hook of Inductor: a script whose pass there makes a sum a difference."""

_MODEL = """\
import torch
{imports}

@torch.compile
def f(x):
    y = torch.relu(x)
{body}


f(torch.randn(8, 8))
"""


def _model(body: str, imports: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return _MODEL.format(body=lines, imports=imports)


BREAKING = {
    "branch": _model("if y.sum() > 3:\n    return y + 1\nreturn y - 1"),
    "branch_assigns": _model("if y.mean() > 0.1:\n    z = y * 2\nelse:\n    z = y * 3\nreturn z.sin()"),
    "two_branches": _model("if y.sum() > 3:\n    y = y + 1\nelse:\n    y = y - 1\nif y.max() > 2:\n    return y.cos()\nreturn y.sin()"),
    "item": _model("scale = y.max().item()\nreturn y / (scale + 1.0)"),
    "float": _model("scale = float(y.abs().mean())\nreturn y * scale"),
    "assertion": _model("assert y.sum() >= 0\nreturn y + 1"),
    "mask": _model("return y[y > 0.5].sum() + y.sum()"),
    "nonzero": _model("rows = torch.nonzero(y > 0.5)\nreturn rows.shape[0] + y.sum()"),
    "deepcopy": _model("z = copy.deepcopy(y)\nreturn z + 1", "import copy"),
    "print": _model('print("computed")\nreturn y + 1'),
    "logging": _model('logging.getLogger("m").warning("computed")\nreturn y + 1', "import logging"),
    "clock": _model("begun = time.perf_counter()\nz = y.exp()\nf.seconds = time.perf_counter() - begun\nreturn z", "import time"),
}  # fmt: skip
"""Models that break, each in a form of its kind."""

RANK_BRANCH = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()


@torch.compile(backend="eager")
def step(x):
    y = x.sin()
    if rank == {odd}:
        y = y * 3
    dist.all_reduce(y)
    return y + 1


step(torch.ones(4))
"""
"""One rank of the job compiles another graph."""

RANK_LATE = """\
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(4)
for _ in range(3):
    if rank == {late}:
        time.sleep(0.4)
    dist.all_reduce(x)
f = torch.compile(lambda x: x.sin(), backend="eager")
f(x)
dist.barrier()
dist.destroy_process_group()
"""
"""One rank of the job keeps the others waiting."""

IN_TESTS = """\
import torch


def test_whole():
    torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(3))


def test_broken():
    def f(x):
        y = x + 1
        print("here")
        return y.cos()

    torch.compile(f, backend="eager")(torch.ones(3))
"""

FAILS = {
    "compiled": """\
import torch
from torch._dynamo.backends.common import aot_autograd


def compiled(graph, inputs):
    def run(inputs):
        raise RuntimeError("wrong code")

    run._boxed_call = True
    return run


@torch.compile(backend=aot_autograd(fw_compiler=compiled))
def f(x):
    return x.sin() + 1


f(torch.ones(4))
""",
    "always": """\
import torch


@torch.compile(backend="eager")
def f(x, i):
    return x.index_select(0, i)


f(torch.ones(4), torch.tensor([9]))
""",
}
"""Whether the error is of compiled code alone."""

STEPS = {
    "plain": """\
import torch

f = torch.compile(lambda x: x.sin() + 1, backend="eager", dynamic=False)
f(torch.ones(3))
""",
    "again": """\
import torch

f = torch.compile(lambda x: x.sin() + 1, backend="eager", dynamic=False)
for size in (3, 4, 5, 6):
    f(torch.ones(size))
""",
}
"""Whether a function is compiled only once."""

TWO_ROADS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(self.a(x))
        return {operation}


torch.manual_seed(0)
with torch.no_grad():
    torch.compile(Net().eval())(torch.randn(4, 8))
"""
"""An operation that ONNX's exporter does not know is left to eager."""

SIDE_BY_SIDE = """\
import torch


@torch.compile
def model(x):
    y = x.sin()
    return y * {factor}


def main():
    total = 0.0
    for step in range(4):
        out = model(torch.full((4,), float(step)))
        total = total + float(step * {factor})
    print(total)


main()
"""
"""What is 7.0 * step and the like at a line of the running script, and which kernel its compiled line is in."""

MODULE = """\
import sys

import torch


@torch.compile
def step(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


print(sys.argv[1], step(torch.ones(4)))
"""
"""Line 8 breaks the graph."""
