# lane: deep
"""Kernels that Inductor leaves apart although one feeds the other, and says why."""
import torch


@torch.compile
def f(x):
    y = x.softmax(-1)
    z = y.t().contiguous().sum(0)
    return z.cumsum(0), y.sum() + x.mean()
    #      ^^^^^^^^^^^ fallback fallback-no-lowering


f(torch.ones(64, 128))
