"""A factor is made for each call."""

import torch

def target(x, factor):
    scale = factor * 2
    return x * scale


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), 0.1)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for factor in (0.1, 0.2, 0.3):
        compiled(make()[0], factor)
