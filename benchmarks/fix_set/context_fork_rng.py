"""Noise that does not move the generator."""

import torch

def target(x):
    with torch.random.fork_rng():
        y = x * 2
    return y + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
