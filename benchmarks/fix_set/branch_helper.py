"""A helper decides."""

import torch

def is_large(x):
    return x.abs().mean() > 0.5


def target(x):
    y = x.sin()
    if is_large(y):
        y = y * 0.5
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
