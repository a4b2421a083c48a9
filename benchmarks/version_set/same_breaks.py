# change: 2.13 2.13 none
"""Graph breaks of several kinds: two environments with the same version must show no difference."""

import time

import torch


def logged(y):
    print("mean", float(y.mean()))


@torch.compile
def step(x):
    y = x.sin() * 2
    logged(y)
    if y.sum() > 0:
        y = y.relu()
    torch._dynamo.graph_break()
    return y + (time.time() > 0) + len({id(x)})


for _ in range(2):
    step(torch.rand(8, 16))
