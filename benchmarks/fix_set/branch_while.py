"""A loop until the values are small."""

import torch

def target(x):
    while x.abs().max() > 1:
        x = x / 2
    return x + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
