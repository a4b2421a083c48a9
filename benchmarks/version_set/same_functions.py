# change: 2.13 2.13 none
"""Transforms, sparse results, views and changes in place: two environments with the same version must show no difference."""

import torch


@torch.compile
def curvature(x):
    return torch.func.vmap(torch.func.grad(lambda row: (row.sin() * row).sum()))(x)


@torch.compile(dynamic=True)
def chosen(x):
    x = x.clone()
    x[:, ::2].mul_(3)
    best = x.topk(2, -1)
    return x.masked_fill(x < 0, 0).cumsum(0), best.values, best.indices, x.var(1)


@torch.compile(backend="eager")
def found(x):
    return x.nonzero().float().mean() + torch.unique(x.round()).numel()


curvature(torch.randn(4, 8))
chosen(torch.randn(6, 8))
chosen(torch.randn(7, 8))
found(torch.randn(16))
