# change: 2.11 2.13 aten.addcmul
"""`addcmul` has no decomposition in 2.13."""

import torch


@torch.compile
def fused(x):
    return torch.addcmul(x, x, x, value=2)


fused(torch.rand(16))
