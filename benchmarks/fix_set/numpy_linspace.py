"""A schedule of drop rates."""

import numpy as np
import torch

def target(x):
    rates = [float(v) for v in np.linspace(0, 0.1, 4)]
    for rate in rates:
        x = x * (1 - rate)
    return x


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
