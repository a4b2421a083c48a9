# change: 2.11 2.13 ?
"""A generator that is made while tracing breaks by another rule."""

import torch


@torch.compile(backend="eager")
def seeded(x):
    generator = torch.Generator().manual_seed(3)
    return torch.rand(4, generator=generator) + x


seeded(torch.ones(4))
