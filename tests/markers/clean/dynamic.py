"""Sizes that were declared dynamic and stay so."""
import torch


@torch.compile(dynamic=True)
def by_flag(x):
    return (x * 2).sum(-1) / x.shape[0]


@torch.compile
def by_mark(x):
    return x.cumsum(0)[-1]


for n in (3, 5, 9, 17):
    by_flag(torch.ones(n, n + 1))
    x = torch.ones(n, 4)
    torch._dynamo.mark_dynamic(x, 0)
    by_mark(x)
