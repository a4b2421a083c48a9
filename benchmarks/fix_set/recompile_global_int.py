"""A global step counter."""

import torch

STEP = 2


def target(x):
    return x + STEP


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for value in (2, 3, 4):
        STEP = value
        compiled(*make())
