# lane: deep
"""A kernel that reads what another one has just written, also from its end: the CPU backend leaves them apart."""
import torch


@torch.compile
def f(x):
    rows = x.sum(1)
    return rows + rows.flip(0)
    #^^^^^^^^^^^^^^^^^^^^^^^^^ missed-fusion missed-fusion


f(torch.ones(64, 64))
