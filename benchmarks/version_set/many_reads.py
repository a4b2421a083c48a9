# change: 2.11 2.13 torch._inductor.config.realize_acc_reads_threshold
"""A value of ten inputs: on a CPU 2.13 computes it in one loop up to 12 inputs, and 2.11 up to 8."""

import torch


@torch.compile
def added(a, b, c, d, e, f, g, h, i, j):
    y = a + b + c + d + e + f + g + h + i + j
    return y.sum(-1), y.t() * 2


added(*[torch.rand(16, 16) for _ in range(10)])
