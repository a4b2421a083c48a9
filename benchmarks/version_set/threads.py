# change: 2.11 2.13 torch._inductor.codegen.cpp.WorkSharing.parallel
"""Parallel loops of 2.13 do not name the number of threads."""

import torch


@torch.compile
def scaled(x):
    return x * 2


scaled(torch.rand(512, 512))
