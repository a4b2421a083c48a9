"""Noise from NumPy's generator."""

import numpy as np
import torch

rng = np.random.default_rng(0)


def target(x):
    np.random.seed(0)
    scale = np.random.rand()
    return x * 2 + scale * 0


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
