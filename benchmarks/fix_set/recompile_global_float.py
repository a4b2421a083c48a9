"""A global scale changes."""

import torch

SCALE = 1.0


def target(x):
    return x * SCALE


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for value in (1.0, 0.5, 0.25):
        SCALE = value
        compiled(*make())
