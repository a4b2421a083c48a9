"""What `trace.log.gz` was recorded from (torch 2.13, CPU): a break in a helper, and recompilations."""
import torch


def log(x):
    print("mean", x.mean())
    return x + 1


@torch.compile
def step(x, factor):
    y = log(x.sin() * factor)
    return y.relu().sum()


@torch.compile(fullgraph=True)
def strict(x):
    print("no")
    return x + 1


for size in (4, 5):
    step(torch.ones(size, 3, requires_grad=True), 1.5).backward()
step(torch.ones(4, 3), 2.5)
try:
    strict(torch.ones(3))
except Exception as error:
    print(type(error).__name__)
