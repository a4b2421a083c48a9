"""A helper that is marked."""

import torch

@torch.compiler.disable
def scale(x):
    return x * 2


def target(x):
    return scale(x.sin()) + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
