"""A step number is passed."""

import torch

def target(x, step):
    return x * step + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), 3)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for step in (2, 3, 4, 5):
        compiled(make()[0], step)
