"""Lengths as a list."""

import torch

def target(x, lengths):
    total = x.sum()
    for n in lengths.tolist():
        total = total + n
    return total


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.tensor([1, 2, 3]))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
