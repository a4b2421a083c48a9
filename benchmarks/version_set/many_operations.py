# change: 2.11 2.13 torch._inductor.config.realize_opcount_threshold
"""A value that is read twice, of 37 operations: on a CPU 2.13 computes it in one loop up to 50, and 2.11 up to 30."""

import torch


@torch.compile
def chained(x):
    for _ in range(18):
        x = torch.sin(x) * 1.01
    return x + 1, x.sum(-1, keepdim=True) * x


chained(torch.rand(16, 16))
