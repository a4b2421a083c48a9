# change: 2.11 2.13 torch._inductor.config.realize_acc_reads_threshold
"""Bilinear interpolation: 2.11 stores a value in between for its many reads, and 2.13 does not."""

import torch


@torch.compile
def doubled(x):
    return torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")


doubled(torch.rand(1, 1, 8, 8))
