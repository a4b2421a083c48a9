"""Scripts whose ranks 0 and 5 of 8 compile something else, each in one way, and scripts whose ranks do not.

``# ← code`` marks the line that the finding is to be at, with its code without ``rank-divergence-``.
"""

from __future__ import annotations

HEAD = """\
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
"""
PLAIN = """\
@torch.compile
def f(x):
{body}

f(torch.ones(8, 8, device="cuda"))
"""


def _in_function(*lines: str) -> str:
    return PLAIN.format(body="\n".join(f"    {line}" for line in lines))


DIVERGING = {
    "get_rank": _in_function("return x + dist.get_rank()  # ← constant"),
    "a global": _in_function("y = x.sin()", "return y * rank  # ← constant"),
    "a variable": "offset = 4 * int(os.environ['RANK'])\n" + _in_function("return (x - offset).relu()  # ← constant"),
    "a fraction": "scale = 1.0 / (1 + rank)\n" + _in_function("return x * scale  # ← constant"),
    "an attribute": """\
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = rank * 100

    def forward(self, x):
        y = x.cos()
        return y.clamp(min=self.start)  # ← constant

torch.compile(Shift())(torch.ones(4))
""",
    "another operation": _in_function(
        "if rank == 0:", "    x = x.sin()  # ← graph", "else:", "    x = x.cos()", "return x + 1"
    ),
    "one operation more": _in_function(
        "x = x + 1", "if dist.get_rank() == 0:", "    x = x.relu()  # ← graph", "return x"
    ),
    "deeper": """\
net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(1 + rank)])

@torch.compile
def f(x):
    return net(x)  # ← graph

f(torch.ones(2, 8))
""",
    "a branch of numbers": _in_function(
        "y = x.exp()", "if rank < 4:", "    return y.sum(0)  # ← graph", "return y.mean(0)"
    ),
    "a reduction": _in_function(
        "op = 'sum' if rank == 0 else 'max'", "return funcol.all_reduce(x, op, dist.group.WORLD)  # ← collective"
    ),
    "a collective on one rank": _in_function(
        "y = x.sin()",
        "if rank == 0:",
        "    y = funcol.all_reduce(y, 'sum', dist.group.WORLD)  # ← collective",
        "return y + 1",
    ),
    "collectives in another order": _in_function(
        "def total(x):",
        "    return funcol.all_reduce(x, 'sum', dist.group.WORLD)  # ← collective",
        "def gathered(x):",
        "    return funcol.all_gather_tensor(x, 0, dist.group.WORLD)",
        "return (total(x), gathered(x)) if rank == 0 else (gathered(x), total(x))[::-1]",
    ),
    "a collective of another size": _in_function(
        "y = x[: rank + 1]", "return funcol.all_reduce(y, 'sum', dist.group.WORLD)  # ← collective"
    ),
    "a group of another size": "small, large = dist.new_group([0, 1]), dist.new_group([2, 3, 4, 5])\n"
    + "group = small if rank < 2 else large\n"
    + _in_function("return funcol.all_gather_tensor(x, 0, group)  # ← collective"),
    "a batch of another size": """\
@torch.compile
def f(x):
    y = x + 1  # ← shape
    return y.relu()

f(torch.ones(8 + rank, 8))
""",
    "another dtype": """\
@torch.compile
def f(x):
    y = x.sin()  # ← shape
    return y + 1

f(torch.ones(8, dtype=torch.float32 if rank == 0 else torch.bfloat16))
""",
    "an uneven shard": """\
shard = nn.Linear(8, 5 if rank == 7 else 5 + rank)

@torch.compile
def f(x):
    return shard(x.relu())  # ← shape

f(torch.ones(2, 8))
""",
    "a print on one rank": _in_function("y = x.sin()", "if rank == 0:", "    print('step')  # ← break", "return y + 1"),
    "an item on one rank": _in_function(
        "y = x.sin()", "if rank == 5 and y.sum().item() > 0:  # ← break", "    y = y + 1", "return y * 2"
    ),
    "sizes on one rank": """\
@torch.compile(dynamic=False)
def f(x):  # ← count
    return x.sin() + 1

for size in (4, 5, 6) if rank == 0 else (4, 4, 4):
    f(torch.ones(size))
""",
    "a flag on one rank": """\
@torch.compile
def f(x, training):  # ← count
    return x * 2 if training else x + 1

for training in (True, rank == 0):
    f(torch.ones(4), training)
""",
    "on one rank only": """\
@torch.compile
def step(x):
    return x + 1

@torch.compile
def evaluate(x):  # ← missing
    return x.sum()

x = step(torch.ones(4))
if rank == 0:
    evaluate(x)
""",
    "in another order": """\
@torch.compile
def a(x):  # ← order
    return x + 1

@torch.compile
def b(x):
    return x * 2

for f in (a, b) if rank == 0 else (b, a):
    f(torch.ones(4))
""",
}
"""What the fast lane shows."""

_TENSOR_PARALLEL = """\
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

{option}
mesh = init_device_mesh("cuda", (world // 4, 4), mesh_dim_names=("dp", "tp"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(64, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        h = {embedded}
        return self.down(torch.relu(self.up(h)))


net = Net().to("cuda")
plan = {{"up": ColwiseParallel(), "down": RowwiseParallel(){sharded}}}
net = torch.compile(parallelize_module(net, mesh["tp"], plan))
net({inputs}).sum().backward()
"""
_TOKENS = "torch.randint(0, 64, (4, 8), device='cuda')"
_SHARDED = ', "emb": RowwiseParallel(input_layouts=Replicate())'

DEEP = {
    "a sharded vocabulary": _TENSOR_PARALLEL.format(
        option="", embedded="self.emb(x)  # ← constant", sharded=_SHARDED, inputs=_TOKENS
    ),
}
"""What only the deep lane shows, since the number is computed below Dynamo."""

_BLOCKS = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 64)

    def forward(self, x):
        return torch.relu(self.a(x)) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Net().cuda()
"""
ALIKE = {
    "other data": "torch.manual_seed(rank)\n@torch.compile\ndef f(x):\n    return x.sin().sum()\nf(torch.randn(8))\n",
    "groups": "groups = [dist.new_group([2 * i, 2 * i + 1]) for i in range(4)]\n"
    + _in_function(
        "y = funcol.all_reduce(x, 'sum', groups[rank // 2])", "return funcol.all_reduce(y, 'sum', dist.group.WORLD)"
    ),
    "a print outside": _in_function("return x + 1") + "\nif rank == 0:\n    print('done')\n",
    "blocks": _BLOCKS
    + "for block in net.blocks:\n    block.compile()\nnet(torch.ones(4, 64).cuda()).sum().backward()\n",
    "ddp": _BLOCKS
    + "net = torch.compile(nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1))\n"
    + "for _ in range(2):\n    net(torch.ones(4, 64).cuda()).sum().backward()\n",
    "fsdp2": "from torch.distributed.fsdp import fully_shard\n"
    + _BLOCKS
    + "for block in net.blocks:\n    block.compile()\n    fully_shard(block)\n"
    + "fully_shard(net)\nnet(torch.ones(4, 64).cuda()).sum().backward()\n",
}
"""What is the same on all ranks."""
ALIKE_DEEP = {
    "tensor parallel": _TENSOR_PARALLEL.format(
        option="", embedded="x", sharded="", inputs="torch.ones(4, 32, device='cuda')"
    ),
    "compiled on one rank": _TENSOR_PARALLEL.format(
        option="import torch.distributed.config\ntorch.distributed.config.compile_on_one_rank = True",
        embedded="self.emb(x)", sharded=_SHARDED, inputs=_TOKENS,
    ),
}  # fmt: skip
