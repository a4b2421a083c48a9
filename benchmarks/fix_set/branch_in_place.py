"""A branch that changes a local tensor in place."""

import torch

def target(x):
    y = x.clone()
    if y.mean() > 0:
        y.mul_(2)
    return y + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
