"""Positions that are not zero."""

import torch

def target(x):
    index = x.relu().nonzero()
    return index.sum() + x.sum()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
