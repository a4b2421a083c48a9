"""A row of a batch is replaced."""

import torch

def target(x):
    y = x * 2
    if y[0].sum() > 0:
        y[0] = y[0] * 3
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
